/**
 * Tags, lengths and values of DER (X.690), as far as CredSSP, SPNEGO, Kerberos and certificates need them: tags of one
 * byte, definite lengths. Accepts lengths that are not minimal, since some peers write them.
 */
import { Buffer } from 'node:buffer'
import { MalformedError } from './malformed.ts'

export const TAG = {
  INTEGER: 0x02,
  BIT_STRING: 0x03,
  OCTET_STRING: 0x04,
  OID: 0x06,
  ENUMERATED: 0x0a,
  SEQUENCE: 0x30,
  /** [APPLICATION 0], constructed */
  APPLICATION: 0x60,
} as const

/** The tag of `[number]`, constructed. */
export const contextTag = (number: number): number => 0xa0 | number

/** Bytes of a length after its first: enough for every supported message. */
const LENGTH_BYTES_LIMIT = 4

export interface Head {
  tag: number
  /** Bytes of tag and length. */
  size: number
  /** Bytes of the value. */
  length: number
}

/** Returns the tag and length at `offset`, or undefined if they are incomplete. Throws MalformedError. */
export function readHead(bytes: Uint8Array, offset: number, what: string): Head | undefined {
  const tag = bytes[offset]
  const first = bytes[offset + 1]
  if (tag === undefined) return undefined
  if ((tag & 0x1f) === 0x1f) {
    throw new MalformedError(`${what}: a tag of one byte was expected, found 0x${tag.toString(16)}`)
  }
  if (first === undefined) return undefined
  if (first < 0x80) return { tag, size: 2, length: first }
  const count = first & 0x7f
  if (count === 0 || LENGTH_BYTES_LIMIT < count) {
    throw new MalformedError(
      `${what}: a length of 1 to ${LENGTH_BYTES_LIMIT} bytes was expected, found 0x${first.toString(16)}`,
    )
  }
  if (bytes.length < offset + 2 + count) return undefined
  let length = 0
  for (let at = 0; at < count; at++) length = length * 256 + bytes[offset + 2 + at]!
  return { tag, size: 2 + count, length }
}

/** Reads values in sequence, as views of the bytes. Every read throws MalformedError. */
export class DerReader {
  readonly #bytes: Uint8Array
  readonly #what: string
  #offset = 0

  /** `what` names the message in errors. */
  constructor(bytes: Uint8Array, what: string) {
    this.#bytes = bytes
    this.#what = what
  }

  get isAtEnd(): boolean {
    return this.#offset === this.#bytes.length
  }

  /** Returns the next value, which must have this tag. */
  take(tag: number): Uint8Array {
    const value = this.optional(tag)
    if (value === undefined) {
      const found = this.#bytes[this.#offset]
      throw new MalformedError(
        `${this.#what}: tag 0x${tag.toString(16)} was expected, found ${found === undefined ? 'the end' : `0x${found.toString(16)}`}`,
      )
    }
    return value
  }

  /** As `take`, but returns undefined if the next tag differs. */
  optional(tag: number): Uint8Array | undefined {
    if (this.#bytes[this.#offset] !== tag) return undefined
    const { body } = this.#read()
    return body
  }

  /** Returns the next element of any tag: its value, and all its bytes. */
  any(): { tag: number; body: Uint8Array; whole: Uint8Array } {
    return this.#read()
  }

  /** Returns a reader of the next value. */
  enter(tag: number): DerReader {
    return new DerReader(this.take(tag), this.#what)
  }

  /** As `enter`, but returns undefined if the next tag differs. */
  enterOptional(tag: number): DerReader | undefined {
    const value = this.optional(tag)
    return value && new DerReader(value, this.#what)
  }

  /**
   * Reads an INTEGER of at most 32 bits. A positive one may begin with a zero byte; a negative one is
   * returned as its two's complement.
   */
  uint32(): number {
    const value = this.take(TAG.INTEGER)
    const digits = value.length === 5 && value[0] === 0 ? value.subarray(1) : value
    if (digits.length === 0 || 4 < digits.length) {
      throw new MalformedError(
        `${this.#what}: an INTEGER of 32 bits was expected, found ${value.length} bytes`,
      )
    }
    const isNegative = digits === value && (digits[0]! & 0x80) !== 0
    return digits.reduce((sum, byte) => (sum << 8) | byte, isNegative ? -1 : 0) >>> 0
  }

  #read(): { tag: number; body: Uint8Array; whole: Uint8Array } {
    const head = readHead(this.#bytes, this.#offset, this.#what)
    const left = this.#bytes.length - this.#offset
    if (head === undefined || left < head.size + head.length) {
      const needed = head === undefined ? 'a tag and a length' : `${head.size + head.length} bytes`
      throw new MalformedError(
        `${this.#what}: ${needed} were expected at offset ${this.#offset}, found ${left} bytes`,
      )
    }
    const begin = this.#offset
    this.#offset = begin + head.size + head.length
    return {
      tag: head.tag,
      body: this.#bytes.subarray(begin + head.size, this.#offset),
      whole: this.#bytes.subarray(begin, this.#offset),
    }
  }
}

/** Builds a tag, a length and a value from parts. */
export function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  return Buffer.concat([Buffer.from([tag]), lengthBytes(length), ...parts])
}

export const sequence = (...parts: readonly Uint8Array[]): Buffer => der(TAG.SEQUENCE, ...parts)
export const context = (number: number, ...parts: readonly Uint8Array[]): Buffer =>
  der(contextTag(number), ...parts)
export const octets = (bytes: Uint8Array): Buffer => der(TAG.OCTET_STRING, bytes)

/** Builds an INTEGER from 32 signed bits. */
export function integer(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value | 0)
  let first = 0
  // Uses the shortest form: the first nine bits must not all be equal.
  while (first < 3 && (bytes.readInt16BE(first) >> 7 === 0 || bytes.readInt16BE(first) >> 7 === -1))
    first += 1
  return der(TAG.INTEGER, bytes.subarray(first))
}

function lengthBytes(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length])
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(length)
  const digits = bytes.subarray(bytes.findIndex((byte) => byte !== 0))
  return Buffer.concat([Buffer.from([0x80 | digits.length]), digits])
}
