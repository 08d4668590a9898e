/**
 * Characters that no text of a body may contain: they are never intended, and have special meanings in
 * terminals, logs, C programs and other JSON readers. RFC 8265 4.2 forbids them in passwords, too.
 */
import type { ErrorDetail } from '../http/errors.ts'

/** Fields that may contain tabs and ends of lines; a public key may end in one, as its file does. */
const FIELDS_OF_LINES = [
  'description',
  'private_key',
  'ca_private_key',
  'ssh_public_keys',
  'ca_certificates',
  'client_certificate',
  'client_key',
  'next_private_key',
  'idp_metadata',
  'metadata_certificates',
  'certificates',
  'own_certificate',
  'next_certificate',
]

/** NUL and the other control characters, and lone surrogates, which UTF-8 cannot encode (RFC 3629 3). */
const BAD = /[\p{Cc}\p{Cs}]/u
const BAD_IN_LINES = /(?!\t|\r?\n)[\p{Cc}\p{Cs}]/u

/** Returns the texts in a value that contain such a character, each with its field. */
export function characterFlaws(value: unknown, path: readonly string[] = [], inLines = false): ErrorDetail[] {
  if (typeof value === 'string') {
    const bad = (inLines ? BAD_IN_LINES : BAD).exec(value)
    if (!bad) return []
    const code = bad[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')
    return [{ field: path.join('/'), message: `expected text without control characters, got U+${code}` }]
  }
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, one]) =>
    characterFlaws(one, [...path, name], Array.isArray(value) ? inLines : FIELDS_OF_LINES.includes(name)),
  )
}
