/**
 * Hands ssh2 whole packets only. ssh2 takes a new buffer for each packet that does not come in one read, at bulk every
 * second one; here what has come of it waits in a buffer that is used again, and is put before the next read.
 *
 * It works for AES-GCM, where `packet_length` is in the clear (RFC 5647 7.2); what other ciphers carry passes as it is.
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
   * @param chunk what was read, in the shared buffer
   * @returns the whole packets, with what had waited before; what is left over waits now
   */
  take(chunk: Buffer): Buffer {
    const all = this.withRest(chunk)
    let end = 0
    while (all.length - end >= LENGTH) {
      const whole = LENGTH + all.readUInt32BE(end) + TAG
      // no packet that ssh2 takes: it says so
      if (whole > PACKET_BUFFER) return all
      if (end + whole > all.length) break
      end += whole
    }
    if (end < all.length) this.#keep(all.subarray(end))
    return all.subarray(0, end)
  }

  /** What waited, and the chunk, without looking at it. */
  withRest(chunk: Buffer): Buffer {
    if (!this.#rest) return chunk
    const all = prepended(this.#rest.subarray(0, this.#length), chunk)
    this.drop()
    return all
  }

  /** What waits, for whoever is no longer to wait; it is a copy. */
  leave(): Buffer | undefined {
    const left = this.#rest && Buffer.from(this.#rest.subarray(0, this.#length))
    this.drop()
    return left
  }

  /** Nothing is to come any more. */
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

/** Whether ssh2 is between two packets, of the cipher for which this works. */
export function isBetweenPackets(decipher: { _lenBytes?: number }): boolean {
  return decipher._lenBytes === 0 && decipher.constructor.name === 'AESGCMDecipherBinding'
}
