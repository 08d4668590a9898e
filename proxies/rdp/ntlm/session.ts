/** Sealed and signed messages (MS-NLMP 3.4.2 to 3.4.4), with extended session security and 128 bits. */
import { Buffer } from 'node:buffer'
import { timingSafeEqual } from 'node:crypto'
import { hmacMd5 } from '../../../src/model/ntlm-auth.ts'
import type { SecurityContext } from '../gss/mechanism.ts'
import { type Direction, directionKeys } from './keys.ts'
import { Rc4 } from './rc4.ts'

const SIGNATURE_LENGTH = 16
const SIGNATURE_VERSION = Buffer.from([1, 0, 0, 0])

/** Keys and sequence number of one direction. */
class Stream {
  readonly #signKey: Buffer
  readonly #sealKey: Buffer
  #rc4: Rc4
  #sequence = 0

  constructor(sessionKey: Uint8Array, direction: Direction) {
    const { sign, seal } = directionKeys(sessionKey, direction)
    this.#signKey = sign
    this.#sealKey = seal
    this.#rc4 = new Rc4(seal)
  }

  restart(): void {
    this.#rc4 = new Rc4(this.#sealKey)
  }

  cipher(bytes: Uint8Array): Buffer {
    return this.#rc4.apply(bytes)
  }

  /** 2.2.2.9.2: version, encrypted checksum, sequence number. */
  signature(plain: Uint8Array): Buffer {
    const sequence = Buffer.alloc(4)
    sequence.writeUInt32LE(this.#sequence++)
    const checksum = this.cipher(hmacMd5(this.#signKey, sequence, plain).subarray(0, 8))
    return Buffer.concat([SIGNATURE_VERSION, checksum, sequence])
  }
}

export class NtlmSession implements SecurityContext {
  readonly #sent: Stream
  readonly #received: Stream

  /** `sessionKey`: the exported one. */
  constructor(sessionKey: Uint8Array, side: 'client' | 'server') {
    const up = new Stream(sessionKey, 'client-to-server')
    const down = new Stream(sessionKey, 'server-to-client')
    this.#sent = side === 'client' ? up : down
    this.#received = side === 'client' ? down : up
  }

  wrap(plain: Uint8Array): Buffer {
    const sealed = this.#sent.cipher(plain)
    return Buffer.concat([this.#sent.signature(plain), sealed])
  }

  unwrap(wrapped: Uint8Array): Buffer | undefined {
    if (wrapped.length < SIGNATURE_LENGTH) return undefined
    const plain = this.#received.cipher(wrapped.subarray(SIGNATURE_LENGTH))
    return this.#isSigned(plain, wrapped.subarray(0, SIGNATURE_LENGTH)) ? plain : undefined
  }

  /** Restarts the key stream after signing, while the sequence numbers continue (MS-SPNG 3.3.5.1). */
  signMechanisms(list: Uint8Array): Buffer {
    const signature = this.#sent.signature(list)
    this.#sent.restart()
    return signature
  }

  areMechanismsSigned(list: Uint8Array, signature: Uint8Array): boolean {
    const isSigned = this.#isSigned(list, signature)
    this.#received.restart()
    return isSigned
  }

  #isSigned(message: Uint8Array, signature: Uint8Array): boolean {
    const expected = this.#received.signature(message)
    return expected.length === signature.length && timingSafeEqual(expected, signature)
  }
}
