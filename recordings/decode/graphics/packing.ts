/** Packs the bytes of a painter's state for the JSON of a keyframe, in base64. */
import { Buffer } from 'node:buffer'
import type { Cursor } from './cursor.ts'

export type PackedCursor = Omit<Cursor, 'pixels'> & { pixels: string }

export const packBytes = (value: Uint8Array): string => Buffer.from(value).toString('base64')

export function unpackBytes(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(text, 'base64'))
}

export function packWords(value: Uint32Array): string {
  return packBytes(new Uint8Array(value.buffer, value.byteOffset, value.byteLength))
}

export function unpackWords(text: string): Uint32Array<ArrayBuffer> {
  return new Uint32Array(unpackBytes(text).buffer)
}

export function packCursor(cursor: Cursor): PackedCursor {
  return { ...cursor, pixels: packWords(cursor.pixels) }
}

export function unpackCursor(cursor: PackedCursor): Cursor {
  return { ...cursor, pixels: unpackWords(cursor.pixels) }
}
