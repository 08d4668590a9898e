/** Text as Windows writes it: UTF-16, little-endian. */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../malformed.ts'

export const utf16 = (text: string): Buffer => Buffer.from(text, 'utf16le')

/** Throws MalformedError for an odd number of bytes; `what` names the text in it. */
export function utf16Text(bytes: Uint8Array, what: string): string {
  if (bytes.length % 2 !== 0) {
    throw new MalformedError(
      `${what}: an even number of bytes was expected for UTF-16, found ${bytes.length}`,
    )
  }
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf16le')
}

/**
 * Capital letters as Windows' table has them, one code unit for one: `ß` has none there. What does not come back when
 * it is made small again (`ı`, `ſ`, `µ`) is not in that table.
 */
export function windowsUpperCase(text: string): string {
  let upper = ''
  for (let at = 0; at < text.length; at++) {
    const unit = text[at]!
    const capital = unit.toUpperCase()
    upper += capital.length === 1 && capital.toLowerCase() === unit ? capital : unit
  }
  return upper
}
