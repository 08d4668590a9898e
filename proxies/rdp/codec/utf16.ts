/** Text in RDP: UTF-16LE, and one byte per character in old fields. */
import { Buffer } from 'node:buffer'
import { latin1 } from '../../bytes/text.ts'

/** Encodes without a terminator. */
export function utf16Bytes(text: string): Buffer {
  return Buffer.from(text, 'utf16le')
}

/** Decodes all bytes, including terminators. Drops half a code unit at the end. */
export function utf16Text(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength & ~1).toString('utf16le')
}

/** Returns the text up to the first NUL, or all of it. */
export function untilNul(text: string): string {
  const end = text.indexOf('\0')
  return end < 0 ? text : text.slice(0, end)
}

/** Decodes one byte per character, up to the first NUL. */
export function ansiText(bytes: Uint8Array): string {
  return untilNul(latin1(bytes))
}

/** Encodes into a field of `length` bytes, padded with NULs. Cuts the text so that one NUL remains. */
export function ansiField(text: string, length: number): Buffer {
  const field = Buffer.alloc(length)
  field.write(text.slice(0, length - 1), 'latin1')
  return field
}
