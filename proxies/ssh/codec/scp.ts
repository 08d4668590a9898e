/**
 * The records of the SCP protocol, which is rcp's: there is no RFC, so OpenSSH's scp.c is the reference.
 * Parsers read a line without its newline and throw MalformedError.
 */

import { MalformedError } from '../../bytes/malformed.ts'
import { displayText, latin1 } from '../../bytes/text.ts'

/** Longest record or message in bytes. OpenSSH's buffer is 16 KiB; a name has at most 255 bytes. */
export const LINE_LIMIT = 8192

/** First byte of a reply, and of the status after a file's data. */
export const ANSWER = { ok: 0, error: 1, fatal: 2 } as const

export type ScpRecord =
  /** `C0644 SIZE NAME`: a file; its data follows. */
  | { kind: 'file'; size: number; name: string }
  /** `D0755 0 NAME`: the records up to the matching `E` are in this folder. */
  | { kind: 'directory'; name: string }
  /** `E`. */
  | { kind: 'end' }
  /** `T MTIME USEC ATIME USEC`: times of the next file or folder. */
  | { kind: 'times' }

const TIMES = /^T\d{1,20} \d{1,6} \d{1,20} \d{1,6}$/
const ENTRY = /^([CD])[0-7]{4,6} (\d{1,16}) (.+)$/s

/** Returns a record of the sending side, or undefined. Throws for a name that leaves its folder. */
export function parseRecord(line: Uint8Array): ScpRecord | undefined {
  const text = latin1(line)
  if (text === 'E') return { kind: 'end' }
  if (TIMES.test(text)) return { kind: 'times' }
  const [, letter, digits, name] = ENTRY.exec(text) ?? []
  if (letter === undefined || digits === undefined || name === undefined) return undefined
  if (name === '..' || /[/\0]/.test(name)) {
    throw new MalformedError('scp: a name without "/" was expected in a record, found a path')
  }
  const shown = displayText(line.subarray(line.length - name.length))
  if (letter === 'D') return { kind: 'directory', name: shown }
  const size = Number(digits)
  if (!Number.isSafeInteger(size))
    throw new MalformedError('scp: a size of at most 2^53 - 1 was expected, found more')
  return { kind: 'file', size, name: shown }
}
