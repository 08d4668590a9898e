/**
 * Buffers for whole packets that have to wait: in a socket that is full, or for the rest of them to come. They are
 * used again and again, for each is memory outside the heap, and the garbage collector marks the whole heap for every
 * few dozen MiB of that: at bulk a third of the relay's time.
 */
import { Buffer } from 'node:buffer'

/** The largest packet that is framed here, and the largest that ssh2 takes (35,000 bytes). */
export const PACKET_BUFFER = 36 * 1024
/** Free ones that are kept, 4.5 MiB: a busy connection has up to 16 in use. */
const MAX_FREE = 128

const free: Buffer[] = []

export function takeBuffer(): Buffer {
  return free.pop() ?? Buffer.allocUnsafeSlow(PACKET_BUFFER)
}

/** Nothing may refer to the buffer any more. */
export function giveBack(buffer: Buffer): void {
  if (free.length < MAX_FREE) free.push(buffer)
}
