/**
 * Reused buffers for packets that wait for their rest. Buffers are memory outside the heap, and the garbage
 * collector marks the whole heap for every few dozen MiB of it: without reuse, in bulk transfers a third of
 * the relay's time.
 */
import { Buffer } from 'node:buffer'

/** Channel data with a packet's length and its MAC. */
const PACKET_BUFFER = 36 * 1024
/** Free buffers that are kept, 4.5 MiB. */
const MAX_FREE = 128

const free: Buffer[] = []

/** Returns a buffer of at least `length` bytes. */
export function takeBuffer(length: number): Buffer {
  if (length > PACKET_BUFFER) return Buffer.allocUnsafeSlow(length)
  return free.pop() ?? Buffer.allocUnsafeSlow(PACKET_BUFFER)
}

/** Returns a buffer to the pool. Nothing may refer to it any more. */
export function giveBack(buffer: Buffer): void {
  if (buffer.length === PACKET_BUFFER && free.length < MAX_FREE) free.push(buffer)
}
