/** Text as RDP has it: UTF-16LE, and one byte a character in old fields. */
import { Buffer } from 'node:buffer'
import { latin1 } from '../../bytes/text.ts'

/** Without a terminator. */
export function utf16Bytes(text: string): Buffer {
  return Buffer.from(text, 'utf16le')
}

/** All of it, terminators too; half a character at the end is left out. */
export function utf16Text(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength & ~1).toString('utf16le')
}

/** Up to the first NUL, or all of it. */
export function untilNul(text: string): string {
  const end = text.indexOf('\0')
  return end < 0 ? text : text.slice(0, end)
}

/** One byte a character, up to the first NUL. */
export function ansiText(bytes: Uint8Array): string {
  return untilNul(latin1(bytes))
}

/** In a field of so many bytes: filled up with NULs, cut so that at least one is there. */
export function ansiField(text: string, length: number): Buffer {
  const field = Buffer.alloc(length)
  field.write(text.slice(0, length - 1), 'latin1')
  return field
}
