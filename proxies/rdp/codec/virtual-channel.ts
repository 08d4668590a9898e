/** Static virtual channels (MS-RDPBCGR 2.2.6.1): messages in chunks. */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { ByteReader } from './reader.ts'
import { ByteWriter } from './writer.ts'

/** CHANNEL_CHUNK_LENGTH: bytes of a chunk unless negotiated otherwise. */
export const CHUNK_LENGTH = 1600
/** Most bytes of a peer's chunk: the limit of VCChunkSize. */
export const CHUNK_LIMIT = 16_256
const HEADER = 8

export const CHUNK_FLAG = {
  first: 0x1,
  last: 0x2,
  showProtocol: 0x10,
  suspend: 0x20,
  resume: 0x40,
  shadowPersistent: 0x80,
  compressed: 0x200000,
} as const

export interface Chunk {
  /** Length of the whole message. */
  length: number
  isFirst: boolean
  isLast: boolean
  /** View of the chunk's bytes. */
  data: Uint8Array
}

/** Returns undefined for a suspend or resume chunk, which has no data. `what` names the channel in errors. */
export function parseChunk(bytes: Uint8Array, what: string): Chunk | undefined {
  const reader = new ByteReader(bytes, what)
  const length = reader.uint32()
  const flags = reader.uint32()
  if (flags & CHUNK_FLAG.compressed) reader.fail('a chunk that is not compressed was expected')
  if (flags & (CHUNK_FLAG.suspend | CHUNK_FLAG.resume)) return undefined
  const data = reader.rest()
  if (CHUNK_LIMIT < data.length) {
    reader.fail(`a chunk of at most ${CHUNK_LIMIT} bytes was expected, found ${data.length}`)
  }
  return {
    length,
    isFirst: (flags & CHUNK_FLAG.first) !== 0,
    isLast: (flags & CHUNK_FLAG.last) !== 0,
    data,
  }
}

/** Assembles messages from the chunks of one channel in one direction. */
export class ChannelAssembler {
  readonly #name: string
  readonly #limit: number
  #whole: Buffer | undefined
  /** Length of the current message, announced by its first chunk. */
  #total = 0
  #length = 0

  /** `name` of the channel, for errors; `limit`: bytes of one message. */
  constructor(name: string, limit: number) {
    this.#name = name
    this.#limit = limit
  }

  /** Bytes of the incomplete message. */
  get pending(): number {
    return this.#length
  }

  /**
   * Returns the message that this chunk completes, valid until the next call, or undefined if more chunks
   * must follow. Throws MalformedError.
   */
  feed(data: Uint8Array): Uint8Array | undefined {
    const chunk = parseChunk(data, `channel ${this.#name}`)
    if (!chunk) return undefined
    const { length, isFirst, isLast } = chunk
    if (isFirst) {
      if (this.#whole) throw this.#error('the rest of a message', 'the begin of another')
      if (this.#limit < length) throw this.#error(`a message of at most ${this.#limit} bytes`, String(length))
      if (isLast) {
        if (chunk.data.length !== length) {
          throw this.#error(`a message of ${length} bytes`, String(chunk.data.length))
        }
        return chunk.data
      }
      this.#whole = Buffer.allocUnsafe(Math.min(length, 4 * CHUNK_LIMIT))
      this.#total = length
    }
    if (!this.#whole) throw this.#error('the begin of a message', 'the rest of one')
    return this.#append(this.#whole, chunk.data, isLast)
  }

  #append(whole: Buffer, chunk: Uint8Array, isLast: boolean): Uint8Array | undefined {
    const together = this.#length + chunk.length
    if (this.#total < together || (isLast && together < this.#total)) {
      throw this.#error(`a message of ${this.#total} bytes`, isLast ? String(together) : 'more')
    }
    let buffer = whole
    if (buffer.length < together) {
      // Allocates as data arrives, not by the announced length.
      buffer = Buffer.allocUnsafe(Math.min(Math.max(together, buffer.length * 2), this.#total))
      buffer.set(whole.subarray(0, this.#length))
    }
    buffer.set(chunk, this.#length)
    this.#whole = isLast ? undefined : buffer
    this.#length = isLast ? 0 : together
    return isLast ? buffer.subarray(0, together) : undefined
  }

  #error(wanted: string, found: string): MalformedError {
    return new MalformedError(`channel ${this.#name}: ${wanted} was expected, found ${found}`)
  }
}

/** Splits a message into chunks with headers, each for one Send Data. */
export function buildChunks(message: Uint8Array, chunkLength = CHUNK_LENGTH): Buffer[] {
  const chunks: Buffer[] = []
  const count = Math.max(1, Math.ceil(message.length / chunkLength))
  for (let index = 0; index < count; index++) {
    const piece = message.subarray(index * chunkLength, (index + 1) * chunkLength)
    const flags =
      (index === 0 ? CHUNK_FLAG.first : 0) |
      (index === count - 1 ? CHUNK_FLAG.last : 0) |
      (count === 1 ? 0 : CHUNK_FLAG.showProtocol)
    chunks.push(
      new ByteWriter(HEADER + piece.length).uint32(message.length).uint32(flags).bytes(piece).finish(),
    )
  }
  return chunks
}
