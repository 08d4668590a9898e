/**
 * Values of events come from users and targets: a name, a path, a command line. Before one is stored or sent it
 * is bounded, and nothing in it can begin a new line, drive a terminal or turn text around (attack: log
 * injection). The forms that sinks write add their own escapes on top.
 */
import { EVENT_FIELDS, type EventFields } from './fields.ts'

/** Bytes of UTF-8 in one value; what is longer ends with `…`. */
export const MAX_VALUE = 2048

/** C0, DEL, C1, line and paragraph separator, and the marks that change the direction of text. */
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }
const ELLIPSIS = '…'

/** `text` cut to at most `limit` bytes of UTF-8, at the end of a character; at least 3 bytes. */
export function cut(text: string, limit: number): string {
  // no character takes more UTF-16 units than bytes, so only this much of a huge text is looked at
  if (text.length <= limit && Buffer.byteLength(text) <= limit) return text
  const bytes = Buffer.from(text.slice(0, limit))
  let end = Math.min(bytes.length, limit - Buffer.byteLength(ELLIPSIS))
  // not in the middle of a character: continuation bytes are 10xxxxxx
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end) + ELLIPSIS
}

/** Well-formed Unicode without control characters (as `\n`, `\u001b`), at most MAX_VALUE bytes. */
export function cleanValue(text: string): string {
  const bounded = text.length > MAX_VALUE ? text.slice(0, MAX_VALUE + 1) : text
  const escaped = bounded
    .toWellFormed()
    .replace(UNSAFE, (c) => SHORT[c] ?? `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return cut(escaped, MAX_VALUE)
}

/**
 * The fields of an event in the catalogue's order, each value cleaned; those that are undefined or empty are left
 * out. Throws for a field that the catalogue does not know and for a value that is neither text nor a number.
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
