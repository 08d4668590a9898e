/**
 * Cleans the values of events, which come from users and targets: a name, a path, a command line. Before a
 * value is stored or sent its length is limited, and nothing in it can begin a new line, control a terminal
 * or reverse text (attack: log injection). Sinks add the escapes of their own formats.
 */
import { EVENT_FIELDS, type EventFields } from './fields.ts'

/** Limit of a value, in bytes of UTF-8; a longer one ends with `…`. */
export const MAX_VALUE = 2048

/** C0, DEL, C1, line and paragraph separator, and the marks that change the direction of text. */
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }
const ELLIPSIS = '…'

/** Cuts `text` to at most `limit` bytes of UTF-8, at the end of a character; `limit` is at least 3. */
export function cut(text: string, limit: number): string {
  // Read only this much of a huge text: no character has more UTF-16 units than bytes.
  if (text.length <= limit && Buffer.byteLength(text) <= limit) return text
  const bytes = Buffer.from(text.slice(0, limit))
  let end = Math.min(bytes.length, limit - Buffer.byteLength(ELLIPSIS))
  // Do not cut within a character: continuation bytes are 10xxxxxx.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end) + ELLIPSIS
}

/**
 * Returns well-formed Unicode without control characters (escaped as `
 * `, `\u001b`), at most MAX_VALUE bytes.
 */
export function cleanValue(text: string): string {
  const bounded = text.length > MAX_VALUE ? text.slice(0, MAX_VALUE + 1) : text
  const escaped = bounded
    .toWellFormed()
    .replace(UNSAFE, (c) => SHORT[c] ?? `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return cut(escaped, MAX_VALUE)
}

/**
 * Returns the fields of an event in the catalogue's order, each value cleaned, without undefined and empty
 * ones. Throws for a field that the catalogue does not have and for a value that is neither text nor a
 * number.
 */
export function cleanFields(fields: EventFields): EventFields {
  for (const key of Object.keys(fields)) {
    if (!EVENT_FIELDS.some((field) => field === key))
      throw new TypeError(`no event field is called ${cut(key, 40)}`)
  }
  const clean: EventFields = {}
  for (const field of EVENT_FIELDS) {
    const value = fields[field]
    if (value === undefined || value === '') continue
    if (typeof value === 'string') clean[field] = cleanValue(value)
    else if (Number.isFinite(value)) clean[field] = value
    else throw new TypeError(`expected text or a finite number as event field ${field}, got ${typeof value}`)
  }
  return clean
}
