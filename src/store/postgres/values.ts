/** Values between JavaScript and PostgreSQL, so that both engines take and return the same ones. */
import pg from 'pg'

const BYTEA = 17
const INT8 = 20
const NUMERIC = 1700

/** Those of one pool: other users of `pg` in this process keep theirs. */
export const TYPES = {
  getTypeParser(type: number, format?: 'text' | 'binary') {
    // Times and counts are below 2^53, and sums of them are numerics.
    if (type === INT8 || type === NUMERIC) return Number
    if (type === BYTEA) return bytesOf
    return pg.types.getTypeParser(type, format)
  },
} as pg.CustomTypesConfig

/** Decodes `\x00ff`: the setting bytea_output is `hex`. */
const bytesOf = (text: string): Uint8Array => new Uint8Array(Buffer.from(text.slice(2), 'hex'))

/** Returns a parameter, or a list of them, without U+0000, which PostgreSQL has no text with; it becomes U+FFFD. */
export function cleaned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(cleaned)
  return typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value
}
