/**
 * The four forms of a received packet (RFC 4253 6, RFC 5647 7, OpenSSH's PROTOCOL 1.5 and
 * PROTOCOL.chacha20poly1305), opened in place by the ciphers of ssh2's native binding. ssh2's own loops
 * allocate a buffer for each packet that spans two reads.
 */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { uint32At } from '../../bytes/uint32.ts'
import { MAX_IGNORED_PACKET } from './limits.ts'
import type { Ssh2Decipher } from './ssh2.ts'

/** The field before all forms: uint32 packet_length. */
export const LENGTH = 4

/** One cipher with its present keys, in the order of the packets. */
export interface Opener {
  /** Length of the tag or MAC behind a packet. */
  readonly tag: number
  /** Whether ssh2 holds no part of a packet, so that the next byte begins one. */
  readonly isBetweenPackets: boolean
  /**
   * Returns packet_length of the packet that begins at `at`; call it once for each packet. Throws
   * MalformedError if no packet has this length.
   */
  lengthAt(bytes: Buffer, at: number): number
  /** Decrypts the whole packet of this length at `at` in place. Throws if its tag or MAC is wrong. */
  open(bytes: Buffer, at: number, length: number): void
}

const head = Buffer.allocUnsafeSlow(LENGTH)

/** packet_length in the clear, tag of 16 bytes (RFC 5647 7.2, 7.3). */
class GcmOpener implements Opener {
  readonly tag = 16
  readonly #cipher: Ssh2Decipher

  constructor(cipher: Ssh2Decipher) {
    this.#cipher = cipher
  }

  get isBetweenPackets(): boolean {
    return this.#cipher._lenBytes === 0
  }

  lengthAt(bytes: Buffer, at: number): number {
    return checked(uint32At(bytes, at), 16, 0)
  }

  open(bytes: Buffer, at: number, length: number): void {
    const begin = at + LENGTH
    const end = begin + length
    this.#cipher._instance.decrypt(viewOf(bytes, begin, end), length, viewOf(bytes, end, end + this.tag))
  }
}

/** packet_length under a key of its own; the tag covers both (PROTOCOL.chacha20poly1305). */
class ChaChaOpener implements Opener {
  readonly tag = 16
  readonly #cipher: Ssh2Decipher

  constructor(cipher: Ssh2Decipher) {
    this.#cipher = cipher
  }

  get isBetweenPackets(): boolean {
    return this.#cipher._lenPos === 0
  }

  lengthAt(bytes: Buffer, at: number): number {
    bytes.copy(head, 0, at, at + LENGTH)
    // The binding keeps the four bytes for the tag.
    return checked(this.#cipher._instance.decryptLen(head, this.#cipher.inSeqno), 8, 0)
  }

  open(bytes: Buffer, at: number, length: number): void {
    const begin = at + LENGTH
    const end = begin + length
    const tag = viewOf(bytes, end, end + this.tag)
    this.#cipher._instance.decrypt(viewOf(bytes, begin, end), tag, this.#cipher.inSeqno)
  }
}

/** A stream cipher and a MAC: of the ciphertext with its length in the clear (etm), or of the plaintext. */
class MacOpener implements Opener {
  readonly tag: number
  readonly #cipher: Ssh2Decipher
  /** packet_length in the clear, for the MAC. */
  readonly #head = Buffer.allocUnsafeSlow(LENGTH)

  constructor(cipher: Ssh2Decipher) {
    this.tag = cipher._macActualLen
    this.#cipher = cipher
  }

  get isBetweenPackets(): boolean {
    return this.#cipher._blockPos === 0
  }

  lengthAt(bytes: Buffer, at: number): number {
    const { _instance: cipher, _macETM: isEtm } = this.#cipher
    bytes.copy(this.#head, 0, at, at + LENGTH)
    if (!isEtm) cipher.decryptBlock(this.#head)
    return checked(uint32At(this.#head, 0), 8, isEtm ? 0 : LENGTH)
  }

  open(bytes: Buffer, at: number, length: number): void {
    const begin = at + LENGTH
    const end = begin + length
    const mac = viewOf(bytes, end, end + this.tag)
    this.#cipher._instance.decrypt(viewOf(bytes, begin, end), this.#cipher.inSeqno, this.#head, mac)
  }
}

/** Like `subarray`, which costs three times as much for a Buffer. */
function viewOf(bytes: Buffer, begin: number, end: number): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset + begin, end - begin)
}

/** `before`: bytes of the length field that are encrypted in one block with the packet. */
function checked(length: number, block: number, before: number): number {
  if (length > MAX_IGNORED_PACKET || length < block - before || (length + before) % block !== 0)
    throw new MalformedError(`a packet's length was expected, found ${length}`)
  return length
}

/** Returns the opener of ssh2's present cipher, or undefined if only ssh2 itself knows its packets. */
export function openerOf(cipher: Ssh2Decipher): Opener | undefined {
  switch (cipher.constructor.name) {
    case 'AESGCMDecipherBinding':
      return new GcmOpener(cipher)
    case 'ChaChaPolyDecipherBinding':
      return new ChaChaOpener(cipher)
    case 'GenericDecipherBinding':
      // With CBC, the length is in a whole block.
      return cipher._block.length === LENGTH ? new MacOpener(cipher) : undefined
    default:
      return undefined
  }
}
