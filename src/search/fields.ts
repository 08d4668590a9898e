/** Search fields of a collection, and the rules for comparing their values. */
import { nameKey } from '../model/names.ts'

/**
 * - `name`: compared by its key, without regard to case (model/names.ts)
 * - `label`: a word, or a name stored without its key: without regard to the case of a to z
 * - `text`: `=` letter by letter, `~` without regard to the case of a to z
 * - `id`: an id, without regard to case
 * - `flag`: `=` only
 * - `integer`: `=`, `<`, `<=`, `>`, `>=`
 * - `time`: RFC 3339; `~`, `<`, `<=`, `>`, `>=` accept the beginning of one in UTC
 */
export type Kind = 'name' | 'label' | 'text' | 'id' | 'flag' | 'integer' | 'time'

export interface Field {
  kind: Kind
}

/** By the API's spelling; a field of an object within the object is `object.field`. */
export type Fields = Readonly<Record<string, Field>>

/** Converts only A to Z to lower case, exactly as SQL's LIKE and lower() do. */
export function lowerAscii(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

/** Returns the form in which `=` compares texts of a kind. */
export function equalForm(kind: Kind, text: string): string {
  if (kind === 'name') return nameKey(text)
  if (kind === 'label') return lowerAscii(text)
  return kind === 'id' ? text.toUpperCase() : text
}

/** Returns the form in which `~` compares texts of a kind. */
export function likeForm(kind: Kind, text: string): string {
  return kind === 'name' ? nameKey(text) : lowerAscii(text)
}

/** RFC 3339 5.6; `T` and `Z` in any case. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/
const PARTIAL_TIME = /^(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d)(?::(\d\d)(?::(\d\d))?)?)?)?)?$/

/**
 * Returns milliseconds since the epoch, or undefined if the text is not a time, or the day does not exist.
 */
export function timeOf(text: string): number | undefined {
  const upper = text.toUpperCase()
  const time = TIME.test(upper) ? Date.parse(upper) : Number.NaN
  return Number.isNaN(time) || !isDate(upper) ? undefined : time
}

/**
 * Returns the times in UTC that begin with this one: `2031-06` is a month. `to` is the first time after them.
 */
export function spanOf(text: string): { from: number; to: number } | undefined {
  const match = PARTIAL_TIME.exec(text.toUpperCase())
  if (!match) return undefined
  const given = match.slice(1).filter((part) => part !== undefined)
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = given.map(Number)
  const from = Date.UTC(year, month - 1, day, hour, minute, second)
  // Date.UTC reads years before 100 as 19xx, and carries days and hours over their limit.
  if (!new Date(from).toISOString().startsWith(text.toUpperCase())) return undefined
  const next = [year, month, day, hour, minute, second]
  const last = given.length - 1
  next[last] = (next[last] ?? 0) + 1
  const [y = 0, mo = 1, ...rest] = next
  return { from, to: Date.UTC(y, mo - 1, ...rest) }
}

/** Checks the day, since Date.parse accepts the 31st of any month. */
function isDate(text: string): boolean {
  const [year = 0, month = 1, day = 1] = text.slice(0, 10).split('-').map(Number)
  return day <= new Date(Date.UTC(year, month, 0)).getUTCDate()
}
