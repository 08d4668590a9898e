/**
 * Splits one direction of an SFTP channel into packets (draft-ietf-secsh-filexfer-02 section 3: uint32
 * length, byte type, body) without holding them. The visitor names the bytes of a body that it needs in one
 * piece; the rest is delivered as it arrives.
 */

import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { uint32At } from '../../bytes/uint32.ts'

/** OpenSSH's SFTP_MAX_MSG_LENGTH is 256 KiB; a data packet of that size has a header in addition. */
export const PACKET_LIMIT = 256 * 1024 + 1024
/** Size of length and type. */
const PREFIX = 5
/** A larger collecting buffer is not kept for the next packet. */
const KEEP_LIMIT = 1024

export interface PacketVisitor {
  /**
   * Returns how many bytes of a body of `length` bytes must be in one piece. Called again with those bytes as
   * `head` until `head` suffices. Throws MalformedError for an unknown type or length.
   */
  wants(type: number, length: number, head: Uint8Array): number
  /** Receives the wanted bytes of a body (valid during the call only); `rest` bytes follow through `data`. */
  packet(type: number, head: Uint8Array, rest: number): void
  data(bytes: Uint8Array): void
  /** Checked before each step; true stops the splitting there. */
  readonly isPaused?: boolean
}

const NOTHING = new Uint8Array(0)

export class PacketSplitter {
  readonly #visitor: PacketVisitor
  /** -1 while the prefix is read. */
  #type = -1
  #length = 0
  /** Bytes that must be in one piece next. */
  #wanted = PREFIX
  #buffer = Buffer.alloc(0)
  #have = 0
  /** Remaining bytes of the body, delivered through `data`. */
  #rest = 0

  constructor(visitor: PacketVisitor) {
    this.#visitor = visitor
  }

  /** Whether the stream is between two packets. */
  get idle(): boolean {
    return this.#type === -1 && this.#have === 0 && this.#rest === 0
  }

  /**
   * Returns the number of bytes consumed: all, unless the visitor pauses. Throws MalformedError; the stream
   * cannot be parsed after that.
   */
  feed(chunk: Uint8Array): number {
    let at = 0
    while (at < chunk.length && this.#visitor.isPaused !== true) {
      if (this.#rest > 0) {
        const piece = chunk.subarray(at, at + this.#rest)
        at += piece.length
        this.#rest -= piece.length
        this.#visitor.data(piece)
        continue
      }
      if (this.#have === 0 && this.#wanted <= chunk.length - at) {
        const wanted = this.#wanted
        // The same bytes are read again if the visitor wants more of the body.
        if (this.#complete(chunk.subarray(at, at + wanted))) at += wanted
        continue
      }
      const piece = chunk.subarray(at, at + this.#wanted - this.#have)
      this.#collect(piece)
      at += piece.length
      if (this.#have === this.#wanted && this.#complete(this.#buffer.subarray(0, this.#have))) this.#forget()
    }
    return at
  }

  /** Processes the wanted bytes. Returns false if more bytes of the same body are wanted. */
  #complete(bytes: Uint8Array): boolean {
    if (this.#type === -1) {
      this.#length = uint32At(bytes, 0) - 1
      this.#type = bytes[4]!
      if (this.#length < 0 || PACKET_LIMIT <= this.#length) {
        throw new MalformedError(
          `sftp: a packet of 1 to ${PACKET_LIMIT} bytes was expected, found ${this.#length + 1} bytes`,
        )
      }
      this.#want(NOTHING)
      if (this.#wanted === 0) this.#deliver(NOTHING)
      return true
    }
    this.#want(bytes)
    if (bytes.length < this.#wanted) return false
    this.#deliver(bytes)
    return true
  }

  #want(head: Uint8Array): void {
    this.#wanted = this.#visitor.wants(this.#type, this.#length, head)
    if (this.#length < this.#wanted) {
      throw new MalformedError(
        `sftp: packet type ${this.#type} with at least ${this.#wanted} bytes was expected, found ${this.#length}`,
      )
    }
  }

  #deliver(head: Uint8Array): void {
    const type = this.#type
    this.#rest = this.#length - head.length
    this.#type = -1
    this.#wanted = PREFIX
    this.#visitor.packet(type, head, this.#rest)
  }

  #collect(piece: Uint8Array): void {
    if (this.#buffer.length < this.#wanted) {
      const larger = Buffer.allocUnsafe(Math.max(this.#wanted, 64))
      larger.set(this.#buffer.subarray(0, this.#have))
      this.#buffer = larger
    }
    this.#buffer.set(piece, this.#have)
    this.#have += piece.length
  }

  #forget(): void {
    this.#have = 0
    if (KEEP_LIMIT < this.#buffer.length) this.#buffer = Buffer.alloc(0)
  }
}
