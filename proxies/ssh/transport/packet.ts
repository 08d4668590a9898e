/**
 * Frames outgoing packets (RFC 4253 6) for the relay's hot path. ssh2 allocates a buffer and draws random
 * padding for each packet, which costs as much as encrypting it. Here all connections share one buffer, since
 * a packet is built, encrypted in place and written to the kernel without interruption, and padding comes
 * from a pool of random bytes.
 *
 *     uint32    packet_length
 *     byte      padding_length
 *     byte[n1]  payload
 *     byte[n2]  random padding
 *     byte[16]  room for the tag
 */
import { Buffer } from 'node:buffer'
import { randomFillSync } from 'node:crypto'
import { takeBuffer } from './packet-buffers.ts'

/** The two ciphers of ssh2's native binding that encrypt in place, and the alignment of packet_length. */
const BLOCK: Readonly<Record<string, number>> = { AESGCMCipherBinding: 16, ChaChaPolyCipherBinding: 8 }

const HEADER = 5
const TAG = 16
const MIN_PADDING = 4
/** The largest payload of a channel's data message with its header, and some room. */
const MAX_PAYLOAD = 34_000
const POOL = 32 * 1024

let shared = takeBuffer()
const pool = Buffer.allocUnsafeSlow(POOL)
let poolAt = POOL

/**
 * Builds a packet with this payload, ready for `cipher.encrypt`. Returns undefined if the cipher or the size
 * is not supported. The packet is valid until the next call, unless `keepPacket` is called before.
 */
export function framePacket(cipher: object, payload: Uint8Array): Buffer | undefined {
  const block = BLOCK[cipher.constructor.name]
  if (block === undefined || payload.length > MAX_PAYLOAD) return undefined
  let padding = block - ((1 + payload.length) % block)
  if (padding < MIN_PADDING) padding += block
  const length = 1 + payload.length + padding
  const packet = shared.subarray(0, 4 + length + TAG)
  packet.writeUInt32BE(length, 0)
  packet[4] = padding
  packet.set(payload, HEADER)
  if (poolAt + padding > POOL) {
    randomFillSync(pool)
    poolAt = 0
  }
  packet.set(pool.subarray(poolAt, poolAt + padding), HEADER + payload.length)
  poolAt += padding
  return packet
}

/**
 * Returns the buffer of the last packet, which still waits in a socket; the next packet gets another buffer.
 * The caller gives the buffer back.
 */
export function keepPacket(): Buffer {
  const kept = shared
  shared = takeBuffer()
  return kept
}
