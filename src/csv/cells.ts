/**
 * Values as cells, and back. What is written by `cellOf` comes back from `valueIn` as it was.
 *
 * A spreadsheet runs a cell that begins like a formula (CWE-1236), so such a text gets a `'` in front, which is
 * taken away again when it is read; one that is read without it is refused. The same `'` stands before a formula
 * after any usual separator or a line's end: a spreadsheet that expects another separator than ours knows our
 * quotes at the beginning of a line only, and begins a cell there.
 */
import { CellError } from './error.ts'

export const KINDS = ['text', 'word', 'nullable', 'list', 'boolean', 'integer', 'time', 'secret'] as const
/**
 * `text`: an empty cell is an empty text. `word`: a text that cannot be empty, so an empty cell says nothing.
 * `nullable`: a text, or null for an empty cell. `list`: texts; an empty cell is an empty list. `time`: RFC 3339; an empty cell is none (null).
 * `secret`: goes in and never out, taken as it stands.
 */
export type Kind = (typeof KINDS)[number]
export type Value = string | number | boolean | readonly string[] | null

/** Between the members of a list; a backslash before it, or before a backslash, makes it a part of the member. */
export const LIST_SEPARATOR = '|'

/** What Excel and LibreOffice take for a formula: also after a tab or a line's end, also in full width. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/
const NEUTRALISED = /^'+[=+\-@\t\r\n＝＋－＠]/

/** Within a text: quotes before the formula are not seen by a spreadsheet that takes them for its own. */
const INNER_FORMULA = /([;,\t|\r\n])(?=["']*[=+\-@＝＋－＠])/g
const INNER_NEUTRALISED = /([;,\t|\r\n])'(?=["']*[=+\-@＝＋－＠])/g

const INTEGER = /^-?\d{1,15}$/
const TRUE = /^(true|1)$/i
const FALSE = /^(false|0)$/i

/** The cell of a value. Throws for a secret: those are never written. */
export function cellOf(kind: Kind, value: Value | undefined): string {
  if (kind === 'secret') throw new TypeError('a secret is never written into a table')
  if (value === undefined || value === null) return ''
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return neutralised(typeof value === 'string' ? value : joined(value))
}

/** The value of a cell; undefined when the cell says nothing. @throws CellError */
export function valueIn(kind: Kind, cell: string): Value | undefined {
  if (kind === 'secret') return cell === '' ? undefined : cell
  if (kind === 'integer') return cell === '' ? undefined : integerOf(cell)
  const text = plain(cell)
  switch (kind) {
    case 'text':
      return text
    case 'word':
      return text === '' ? undefined : text
    case 'nullable':
      return text === '' ? null : text
    case 'list':
      return members(text)
    case 'boolean':
      return text === '' ? undefined : booleanOf(text)
    case 'time':
      return text === '' ? null : timeOf(text)
  }
}

function neutralised(text: string): string {
  const safe = text.replace(INNER_FORMULA, "$1'")
  return FORMULA.test(safe) || NEUTRALISED.test(safe) ? `'${safe}` : safe
}

function plain(cell: string): string {
  if (FORMULA.test(cell)) {
    const first = JSON.stringify(cell[0])
    throw new CellError(`this begins with ${first}, like a formula: if it is a text, put ' in front of it`)
  }
  const text = NEUTRALISED.test(cell) ? cell.slice(1) : cell
  return text.replace(INNER_NEUTRALISED, '$1')
}

/** @throws TypeError for a single empty member, which no list of names has: it would read as an empty list */
function joined(list: readonly string[]): string {
  if (list.length === 1 && list[0] === '') throw new TypeError('a list of one empty text has no cell')
  return list.map((member) => member.replace(/[\\|]/g, '\\$&')).join(LIST_SEPARATOR)
}

function members(text: string): string[] {
  if (text === '') return []
  const list: string[] = []
  let member = ''
  for (let i = 0; i < text.length; i++) {
    const character = text[i]!
    if (character === LIST_SEPARATOR) {
      list.push(member)
      member = ''
    } else if (character === '\\') {
      const escaped = text[++i]
      if (escaped !== LIST_SEPARATOR && escaped !== '\\')
        throw new CellError('in a list, a backslash stands before "|" or another backslash only')
      member += escaped
    } else member += character
  }
  list.push(member)
  return list
}

function integerOf(cell: string): number {
  if (!INTEGER.test(cell)) throw new CellError(`expected a whole number, got ${short(cell)}`)
  return Number(cell)
}

function booleanOf(text: string): boolean {
  if (TRUE.test(text)) return true
  if (FALSE.test(text)) return false
  throw new CellError(`expected true or false, got ${short(text)}`)
}

/** In one spelling, so that a time that was not changed does not look like it. Others judge what is no time. */
function timeOf(text: string): string {
  const time = Date.parse(text)
  return Number.isNaN(time) || !/^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$/i.test(text)
    ? text
    : new Date(time).toISOString()
}

function short(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 39)}…` : text)
}
