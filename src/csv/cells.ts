/**
 * Converts values to cells, and back. A cell of `cellOf` is read by `valueIn` as the same value.
 *
 * A spreadsheet runs a cell that begins like a formula (CWE-1236), so such a text gets a leading `'`, which
 * is removed when it is read; a formula without it is rejected. The same `'` precedes a formula after any
 * usual separator or a line's end: a spreadsheet that expects another separator recognizes our quotes only at
 * the beginning of a line, and begins a cell there.
 */
import { CellError } from './error.ts'

export const KINDS = [
  'text',
  'word',
  'nullable',
  'list',
  'boolean',
  'integer',
  'nullable_integer',
  'time',
  'secret',
] as const
/**
 * `text`: an empty cell is an empty text. `word`: a text that cannot be empty, so an empty cell has no value.
 * `nullable`, `nullable_integer`: a text or an integer, or null for an empty cell. `list`: texts; an empty cell is an empty list. `time`: RFC
 * 3339, or null for an empty cell. `secret`: read unchanged, and never written.
 */
export type Kind = (typeof KINDS)[number]
export type Value = string | number | boolean | readonly string[] | null

/** Separates the members of a list; a backslash escapes it, or a backslash, within a member. */
export const LIST_SEPARATOR = '|'

/**
 * Beginnings of a formula for Excel and LibreOffice: also after a tab or a line's end, also in full width.
 */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/
const NEUTRALISED = /^'+[=+\-@\t\r\n＝＋－＠]/

/** Beginnings within a text: a spreadsheet may remove quotes before the formula. */
const INNER_FORMULA = /([;,\t|\r\n])(?=["']*[=+\-@＝＋－＠])/g
const INNER_NEUTRALISED = /([;,\t|\r\n])'(?=["']*[=+\-@＝＋－＠])/g

const INTEGER = /^-?\d{1,15}$/
const TRUE = /^(true|1)$/i
const FALSE = /^(false|0)$/i

/** Returns the cell of a value. Throws for a secret: secrets are never written. */
export function cellOf(kind: Kind, value: Value | undefined): string {
  if (kind === 'secret') throw new TypeError('a secret is never written into a table')
  if (value === undefined || value === null) return ''
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return neutralised(typeof value === 'string' ? value : joined(value))
}

/** Returns the value of a cell, or undefined if the cell has no value. @throws CellError */
export function valueIn(kind: Kind, cell: string): Value | undefined {
  if (kind === 'secret') return cell === '' ? undefined : cell
  if (kind === 'integer') return cell === '' ? undefined : integerOf(cell)
  if (kind === 'nullable_integer') return cell === '' ? null : integerOf(cell)
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

/**
 * @throws TypeError for a single empty member, which no list of names has: its cell would be an empty list
 */
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

/**
 * Returns the time in one spelling, so that an unchanged time compares equal. An invalid time is left to the
 * caller's checks.
 */
function timeOf(text: string): string {
  const time = Date.parse(text)
  return Number.isNaN(time) || !/^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$/i.test(text)
    ? text
    : new Date(time).toISOString()
}

function short(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 39)}…` : text)
}
