/**
 * Passes only whole packets to ssh2. ssh2 allocates a buffer for each packet that spans two reads, in bulk
 * transfers every second one. Here the incomplete packet waits in a reused buffer, and is put before the next
 * read.
 *
 * Works for AES-GCM, where `packet_length` is in the clear (RFC 5647 7.2); data of other ciphers is passed
 * unchanged.
 */
import { Buffer } from 'node:buffer'
import { prepended } from '../../net/shared-read.ts'
import { giveBack, PACKET_BUFFER, takeBuffer } from './packet-buffers.ts'

const LENGTH = 4
const TAG = 16

export class PacketAligner {
  #rest: Buffer | undefined
  #length = 0

  /**
   * @param chunk the data read, in the shared buffer
   * @returns the whole packets, after the kept bytes; an incomplete packet is kept
   */
  take(chunk: Buffer): Buffer {
    const all = this.withRest(chunk)
    let end = 0
    while (all.length - end >= LENGTH) {
      const whole = LENGTH + all.readUInt32BE(end) + TAG
      // No valid packet: ssh2 reports it.
      if (whole > PACKET_BUFFER) return all
      if (end + whole > all.length) break
      end += whole
    }
    if (end < all.length) this.#keep(all.subarray(end))
    return all.subarray(0, end)
  }

  /** Returns the kept bytes and the chunk, unparsed. */
  withRest(chunk: Buffer): Buffer {
    if (!this.#rest) return chunk
    const all = prepended(this.#rest.subarray(0, this.#length), chunk)
    this.drop()
    return all
  }

  /** Returns a copy of the kept bytes and clears them. */
  leave(): Buffer | undefined {
    const left = this.#rest && Buffer.from(this.#rest.subarray(0, this.#length))
    this.drop()
    return left
  }

  /** Releases the buffer at the end. */
  drop(): void {
    if (this.#rest) giveBack(this.#rest)
    this.#rest = undefined
  }

  #keep(rest: Buffer): void {
    this.#rest = takeBuffer()
    rest.copy(this.#rest)
    this.#length = rest.length
  }
}

/** Whether ssh2 is between two packets of a cipher for which alignment works. */
export function isBetweenPackets(decipher: { _lenBytes?: number }): boolean {
  return decipher._lenBytes === 0 && decipher.constructor.name === 'AESGCMDecipherBinding'
}
