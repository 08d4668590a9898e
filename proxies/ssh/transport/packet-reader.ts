/**
 * Reads a connection's packets after the sign-in, a run of them in each read: decrypts them where they were
 * read, and delivers views of their payloads. An incomplete packet waits in a reused buffer, and is put
 * before the next read.
 */
import type { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { prepended } from '../../net/shared-read.ts'
import { MAX_PACKET } from './limits.ts'
import { LENGTH, type Opener, openerOf } from './openers.ts'
import { giveBack, takeBuffer } from './packet-buffers.ts'
import type { Ssh2Decipher } from './ssh2.ts'

/** SSH_MSG_IGNORE (RFC 4253 11.2). */
const MSG_IGNORE = 2

export interface PacketSource {
  /** The cipher of the next packet. */
  readonly decipher: Ssh2Decipher
  /** Whether the connection has ended: no further packet is delivered. */
  readonly hasEnded: boolean
  /** Handles a payload, a view that the next read overwrites. May change the cipher. */
  deliver(payload: Buffer): void
  /** Counts a packet of any kind, also one without a payload. */
  count(bytes: number): void
}

export class PacketReader {
  readonly #source: PacketSource
  #decipher: Ssh2Decipher
  #opener: Opener
  #rest: Buffer | undefined
  #kept = 0
  /** packet_length of the incomplete packet, once it is known. */
  #length: number | undefined

  private constructor(source: PacketSource, opener: Opener) {
    this.#source = source
    this.#decipher = source.decipher
    this.#opener = opener
  }

  /** Returns a reader, or undefined if ssh2 has read part of a packet, or has to read this cipher itself. */
  static of(source: PacketSource): PacketReader | undefined {
    const opener = openerOf(source.decipher)
    return opener?.isBetweenPackets ? new PacketReader(source, opener) : undefined
  }

  /**
   * Delivers the packets that are whole now. Throws if one is malformed or was changed on its way.
   *
   * @param chunk the data read, in the shared buffer
   * @returns the bytes left over if the cipher has changed to one that ssh2 has to read itself
   */
  read(chunk: Buffer): Buffer | undefined {
    const bytes = this.#rest ? prepended(this.#rest.subarray(0, this.#kept), chunk) : chunk
    this.drop()
    let at = 0
    while (bytes.length - at >= LENGTH) {
      this.#length ??= this.#opener.lengthAt(bytes, at)
      const length = this.#length
      const end = at + LENGTH + length + this.#opener.tag
      if (end > bytes.length) break
      this.#open(bytes, at, length)
      this.#length = undefined
      this.#decipher.inSeqno = (this.#decipher.inSeqno + 1) >>> 0
      const payload = payloadAt(bytes, at + LENGTH, length)
      at = end
      if (length > MAX_PACKET && payload[0] !== MSG_IGNORE)
        throw new MalformedError(`a packet of at most ${MAX_PACKET} bytes was expected, found ${length}`)
      if (payload.length > 0) this.#source.deliver(payload)
      this.#source.count(length)
      if (this.#source.hasEnded) return undefined
      if (this.#source.decipher !== this.#decipher && !this.#follow()) return bytes.subarray(at)
    }
    if (at < bytes.length) this.#keep(bytes.subarray(at))
    return undefined
  }

  /** Releases the buffer at the end. */
  drop(): void {
    if (this.#rest) giveBack(this.#rest)
    this.#rest = undefined
  }

  /** Changes to the present cipher. Returns false if ssh2 has to read it. */
  #follow(): boolean {
    this.#decipher = this.#source.decipher
    const opener = openerOf(this.#decipher)
    if (!opener) return false
    this.#opener = opener
    return true
  }

  /** Opens a packet; the error of OpenSSL's GCM has no words. */
  #open(bytes: Buffer, at: number, length: number): void {
    try {
      this.#opener.open(bytes, at, length)
    } catch (cause) {
      throw new MalformedError('a packet with a valid MAC was expected, found a changed one', { cause })
    }
  }

  #keep(rest: Buffer): void {
    this.#rest = takeBuffer(rest.length)
    rest.copy(this.#rest)
    this.#kept = rest.length
  }
}

/** byte padding_length, payload, padding (RFC 4253 6). */
function payloadAt(bytes: Buffer, at: number, length: number): Buffer {
  const padding = bytes[at]!
  if (1 + padding > length)
    throw new MalformedError(`a padding of at most ${length - 1} bytes was expected, found ${padding}`)
  return bytes.subarray(at + 1, at + length - padding)
}
