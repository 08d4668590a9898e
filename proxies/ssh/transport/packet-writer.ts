/**
 * Frames and encrypts outgoing packets (RFC 4253 6) for the relay's hot path, and joins those of one turn to
 * one write: the kernel and Node cost more for each write than for its bytes. ssh2 allocates a buffer, draws
 * random padding and writes for each packet. Here the packets are built and encrypted in a buffer that all
 * connections share, and padding comes from a pool of random bytes.
 *
 *     uint32    packet_length
 *     byte      padding_length
 *     byte[n1]  payload
 *     byte[n2]  random padding
 *     byte[m]   tag or MAC
 */
import { Buffer } from 'node:buffer'
import { randomFillSync } from 'node:crypto'
import type { Socket } from 'node:net'
import { READ_SIZE } from '../../net/shared-read.ts'
import { setUint32At } from '../codec/writer.ts'
import type { Sealer } from './sealers.ts'

const HEADER = 5
const MIN_PADDING = 4
/** The largest payload of a channel's data message with its header, and some room. */
const MAX_PAYLOAD = 34_000
/** Room for the largest packet: header, payload, padding, MAC. */
const MAX_FRAMED = MAX_PAYLOAD + 128
/** A socket's read with its packets framed anew: each grows by a few bytes at most. */
const BATCH = READ_SIZE + 4096 + MAX_FRAMED
/** Fewer bytes are copied if they have to wait, so that they do not keep a whole buffer. */
const SMALL = 16 * 1024
/** Free buffers that are kept, 3.3 MiB. */
const MAX_FREE = 32
const POOL = 32 * 1024

const free: Buffer[] = []
const pool = Buffer.allocUnsafeSlow(POOL)
let poolAt = POOL

let batch: Buffer = Buffer.allocUnsafeSlow(BATCH)
let filled = 0
/** The connection whose packets are in the batch. */
let owner: PacketWriter | undefined
/** Set while a read is handled: its packets are written at its end. */
let isReading = false

/** Handles a read, and then writes the packets that it has caused. */
export function writingBehind(read: () => void): void {
  isReading = true
  try {
    read()
  } finally {
    isReading = false
    owner?.flush()
  }
}

export class PacketWriter {
  readonly #socket: Socket
  readonly #write: (bytes: Uint8Array) => void
  /** Buffers that wait in the socket. */
  readonly #waiting: Buffer[] = []

  /** `write` hands bytes to the socket. */
  constructor(socket: Socket, write: (bytes: Uint8Array) => void) {
    this.#socket = socket
    this.#write = write
  }

  /** Whether a packet of this payload fits. */
  fits(payload: Uint8Array): boolean {
    return payload.length <= MAX_PAYLOAD
  }

  /** Bytes that the socket has not got yet. */
  get length(): number {
    return owner === this ? filled : 0
  }

  /** Frames, encrypts and, at the end of this turn at the latest, writes a payload that fits. */
  add(sealer: Sealer, payload: Uint8Array): void {
    this.#begin()
    const { block, counted } = sealer
    let padding = block - ((counted + 1 + payload.length) % block)
    if (padding < MIN_PADDING) padding += block
    const begin = filled
    const end = begin + HEADER + payload.length + padding
    setUint32At(batch, begin, end - begin - 4)
    batch[begin + 4] = padding
    batch.set(payload, begin + HEADER)
    if (poolAt + padding > POOL) {
      randomFillSync(pool)
      poolAt = 0
    }
    // For so few bytes, a loop costs less than a copy.
    for (let at = end - padding; at < end; at++) batch[at] = pool[poolAt++]!
    const packet = new Uint8Array(batch.buffer, batch.byteOffset + begin, end - begin + sealer.room)
    if (sealer.seal(packet)) filled = end + sealer.tag
  }

  /** Writes the packets of this turn. */
  flush(): void {
    if (owner !== this) return
    owner = undefined
    const bytes = batch.subarray(0, filled)
    filled = 0
    if (bytes.length === 0) return
    if (this.#socket.writableLength === 0) this.recycle()
    if (bytes.length < SMALL) {
      this.#write(Buffer.from(bytes))
      return
    }
    const used = batch
    // The socket may report an error, or ask for more, while it is written to.
    batch = free.pop() ?? Buffer.allocUnsafeSlow(BATCH)
    this.#write(bytes)
    // Node has written the packets, unless the kernel's buffer is full.
    if (this.#socket.writableLength > 0) this.#waiting.push(used)
    else giveBack(used)
  }

  /** Frees the buffers of waiting packets. Call it when the kernel has them all. */
  recycle(): void {
    for (let used = this.#waiting.pop(); used; used = this.#waiting.pop()) giveBack(used)
  }

  #begin(): void {
    if (owner === this) {
      if (BATCH - filled >= MAX_FRAMED) return
      this.flush()
    } else owner?.flush()
    owner = this
    if (!isReading) queueMicrotask(() => this.flush())
  }
}

function giveBack(buffer: Buffer): void {
  if (free.length < MAX_FREE) free.push(buffer)
}
