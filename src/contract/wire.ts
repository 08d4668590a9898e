/**
 * Messages between the broker and a session worker as bytes: JSON, with byte arrays beside it, because most of
 * what a worker sends in bulk is bytes. A message is
 *
 *         4  bytes of all that follows
 *         4  bytes of the JSON text
 *            the JSON text, in which `{"$bytes":LENGTH}` stands for a byte array
 *            the byte arrays, in the order of the text
 *
 * All numbers are big-endian. Decoding believes nothing: every length is checked, and no byte is in two arrays, so
 * that a message is never larger than what was sent.
 */
import { Buffer } from 'node:buffer'
import { HeldBytes, type Part } from '../../recordings/container/held.ts'

/** Largest message: a recording's backlog, and room for the rest. */
export const MAX_MESSAGE = 24 * 1024 * 1024
/** Largest JSON text of a worker's message: parsing it takes the broker's time. */
export const MAX_WORKER_TEXT = 4 * 1024 * 1024

/** Bytes of a length. */
export const LENGTH = 4
const BYTES = '$bytes'

/** The other side sent something that is no message. */
export class WireError extends Error {
  override readonly name = 'WireError'
}

/** Returns the message, which has no held bytes, in parts that refer to its byte arrays without a copy. */
export function encodeMessage(message: unknown): Uint8Array[] {
  return encodeParts(message) as Uint8Array[]
}

/** Like `encodeMessage`; held bytes are byte arrays too, for the other side. */
export function encodeParts(message: unknown): Part[] {
  const arrays: Part[] = []
  const text = Buffer.from(JSON.stringify(stripped(message, arrays)))
  const length = arrays.reduce((sum, array) => sum + array.length, LENGTH + text.length)
  if (length > MAX_MESSAGE) {
    throw new WireError(`expected a message of at most ${MAX_MESSAGE} bytes, got ${length}`)
  }
  const head = Buffer.alloc(2 * LENGTH)
  head.writeUInt32BE(length, 0)
  head.writeUInt32BE(text.length, LENGTH)
  return [head, text, ...arrays]
}

/**
 * Returns the value with places in the stead of byte arrays, which go to `arrays`. JSON's own replacer would get
 * a Buffer only after its bytes have become an array of numbers.
 */
function stripped(value: unknown, arrays: Part[]): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Uint8Array || value instanceof HeldBytes) {
    arrays.push(value)
    return { [BYTES]: value.length }
  }
  if (Array.isArray(value)) return value.map((one) => stripped(one, arrays))
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, stripped(one, arrays)]))
}

/**
 * Returns the message; its byte arrays are views of `bytes`, which begin after the first length.
 * @throws WireError for bytes that are no message
 */
export function decodeMessage(bytes: Buffer, maxText: number): unknown {
  const textLength = bytes.length < LENGTH ? Number.NaN : bytes.readUInt32BE(0)
  const begin = LENGTH + textLength
  if (!(begin <= bytes.length) || textLength > maxText)
    throw new WireError('the text of a message is cut off')
  const arrays = new Arrays(bytes.subarray(begin))
  let message: unknown
  try {
    message = filled(JSON.parse(bytes.toString('utf8', LENGTH, begin)), arrays)
  } catch (error) {
    throw error instanceof WireError ? error : new WireError('expected JSON text in a message')
  }
  if (arrays.left > 0) throw new WireError(`${arrays.left} bytes of a message belong to no array`)
  return message
}

/** Returns the value with the byte arrays in their places. JSON's own reviver takes ten times as long. */
function filled(value: unknown, arrays: Arrays): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = filled(value[i], arrays)
    return value
  }
  const fields = value as Record<string, unknown>
  if (Object.hasOwn(fields, BYTES)) return arrays.take(fields[BYTES])
  // A field `__proto__` of JSON is one of its own: this sets no prototype.
  for (const name of Object.keys(fields)) fields[name] = filled(fields[name], arrays)
  return fields
}

/** The byte arrays of a message, one behind the other. */
class Arrays {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** Number of bytes that were not taken yet. */
  get left(): number {
    return this.#bytes.length - this.#at
  }

  /** @throws WireError for a length that is none, or longer than what is left */
  take(length: unknown): Uint8Array {
    if (typeof length !== 'number' || !Number.isInteger(length) || length < 0 || length > this.left) {
      throw new WireError('a byte array lies outside of its message')
    }
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }
}
