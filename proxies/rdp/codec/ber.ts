/** The subset of BER (X.690) that MCS's connect messages need: definite lengths, tags of one or two bytes. */
import { Buffer } from 'node:buffer'
import type { ByteReader } from './reader.ts'

export const BER = {
  boolean: 0x01,
  integer: 0x02,
  octetString: 0x04,
  enumerated: 0x0a,
  sequence: 0x30,
} as const

/** Reads a definite length of at most four bytes. */
export function readBerLength(reader: ByteReader): number {
  const first = reader.uint8()
  if (first < 0x80) return first
  const count = first & 0x7f
  if (count < 1 || 4 < count) reader.fail(`a BER length of 1 to 4 bytes was expected, found ${count}`)
  let length = 0
  for (let left = count; left > 0; left--) length = length * 0x100 + reader.uint8()
  return length
}

/** Returns the contents of an element with this tag (0x7f65 is a tag of two bytes). Throws on another tag. */
export function readBer(reader: ByteReader, tag: number): Uint8Array {
  reader.expect('BER tag', 0xff < tag ? reader.uint16be() : reader.uint8(), tag)
  return reader.bytes(readBerLength(reader))
}

/** Reads BER.integer or BER.enumerated: not negative, at most four bytes. */
export function readBerNumber(reader: ByteReader, tag: number): number {
  const bytes = readBer(reader, tag)
  const isLong = bytes.length === 5 && bytes[0] === 0
  if (bytes.length === 0 || (4 < bytes.length && !isLong)) {
    reader.fail(`a BER number of 1 to 4 bytes was expected, found ${bytes.length}`)
  }
  if (bytes[0]! & 0x80) reader.fail('a BER number that is not negative was expected')
  return bytes.reduce((number, byte) => number * 0x100 + byte, 0)
}

/** Returns an element with these contents. */
export function buildBer(tag: number, ...contents: Uint8Array[]): Buffer {
  const body = Buffer.concat(contents)
  const head = 0xff < tag ? [tag >> 8, tag & 0xff] : [tag]
  return Buffer.concat([Uint8Array.from([...head, ...berLength(body.length)]), body])
}

/** Returns an element for a number under 2^31. */
export function buildBerNumber(tag: number, number: number): Buffer {
  const bytes = [number & 0xff]
  for (let rest = number >> 8; rest > 0; rest >>= 8) bytes.unshift(rest & 0xff)
  if (bytes[0]! & 0x80) bytes.unshift(0)
  return buildBer(tag, Uint8Array.from(bytes))
}

function berLength(length: number): number[] {
  if (length < 0x80) return [length]
  if (length < 0x100) return [0x81, length]
  return [0x82, length >> 8, length & 0xff]
}
