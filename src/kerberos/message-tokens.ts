/**
 * Messages under the keys of a context of the GSS-API (RFC 4121 section 4.2): sealed (Wrap) and signed (MIC), each with
 * the next sequence number, as either side. Wrap without encryption is neither made nor taken.
 */
import { Buffer } from 'node:buffer'
import { timingSafeEqual } from 'node:crypto'
import { IntegrityError } from './encryption.ts'
import { type Key, USAGE } from './messages.ts'

const HEADER = 16
const WRAP = 0x0504
const MIC = 0x0404
const FLAG = { BY_ACCEPTOR: 1, SEALED: 2, ACCEPTOR_KEY: 4 } as const
const FILLER = 0xff
/** Offsets in a header. */
const AT = { FLAGS: 2, FILLER: 3, EXTRA: 4, ROTATION: 6, NUMBER: 8 } as const

export type Side = 'initiator' | 'acceptor'

const SEAL_USAGE = { initiator: USAGE.INITIATOR_SEAL, acceptor: USAGE.ACCEPTOR_SEAL } as const
const SIGN_USAGE = { initiator: USAGE.INITIATOR_SIGN, acceptor: USAGE.ACCEPTOR_SIGN } as const

export interface TokenKeys {
  side: Side
  key: Key
  /** The key is one that the acceptor has asserted. */
  isAcceptorKey: boolean
  /** Number of our first message, and of the peer's. */
  first: { own: number; peer: number }
}

export class MessageTokens {
  readonly #side: Side
  readonly #peer: Side
  readonly #key: Key
  readonly #isAcceptorKey: boolean
  #next: bigint
  #expected: bigint

  constructor({ side, key, isAcceptorKey, first }: TokenKeys) {
    this.#side = side
    this.#peer = side === 'initiator' ? 'acceptor' : 'initiator'
    this.#key = key
    this.#isAcceptorKey = isAcceptorKey
    this.#next = BigInt(first.own)
    this.#expected = BigInt(first.peer)
  }

  wrap(plain: Uint8Array): Buffer {
    const header = this.#header(WRAP, FLAG.SEALED)
    const { type, bytes } = this.#key
    const whole = Buffer.concat([plain, header])
    const sealed = type.encrypt(bytes, SEAL_USAGE[this.#side], whole)
    whole.fill(0)
    return Buffer.concat([header, sealed])
  }

  /** Returns undefined if the peer has not sealed these bytes, or not as the next ones. */
  unwrap(token: Uint8Array): Buffer | undefined {
    const header = this.#expectedHeader(token, WRAP, FLAG.SEALED)
    if (!header) return undefined
    const whole = this.#opened(unrotated(token.subarray(HEADER), header.readUInt16BE(AT.ROTATION)))
    // The header is sealed with the message, as it was before the rotation, behind bytes without a meaning.
    const extra = header.readUInt16BE(AT.EXTRA)
    const end = (whole?.length ?? 0) - HEADER
    if (!whole || end < extra) return undefined
    header.writeUInt16BE(0, AT.ROTATION)
    if (!header.equals(whole.subarray(end))) return undefined
    this.#expected++
    return whole.subarray(0, end - extra)
  }

  sign(message: Uint8Array): Buffer {
    const header = this.#header(MIC, 0)
    return Buffer.concat([header, this.#checksum(this.#side, message, header)])
  }

  /** Returns whether the peer has signed the message, as the next one. */
  isSigned(message: Uint8Array, token: Uint8Array): boolean {
    const header = this.#expectedHeader(token, MIC, 0)
    if (!header) return false
    const [found, made] = [token.subarray(HEADER), this.#checksum(this.#peer, message, header)]
    if (found.length !== made.length || !timingSafeEqual(found, made)) return false
    this.#expected++
    return true
  }

  /** Wipes the key. */
  close(): void {
    this.#key.bytes.fill(0)
  }

  #header(kind: number, flags: number): Buffer {
    const header = headerOf(kind, this.#flags(this.#side, flags), this.#next)
    this.#next++
    return header
  }

  /** Returns the header of a token, or undefined if it is not one of the peer's next message. */
  #expectedHeader(token: Uint8Array, kind: number, flags: number): Buffer | undefined {
    if (token.length < HEADER) return undefined
    const header = Buffer.from(token.subarray(0, HEADER))
    const expected = headerOf(kind, this.#flags(this.#peer, flags), this.#expected)
    // A MIC has no such counts, and filler in their place.
    if (kind === WRAP) header.copy(expected, AT.EXTRA, AT.EXTRA, AT.NUMBER)
    return header.equals(expected) ? header : undefined
  }

  #flags(side: Side, more: number): number {
    return more | (side === 'acceptor' ? FLAG.BY_ACCEPTOR : 0) | (this.#isAcceptorKey ? FLAG.ACCEPTOR_KEY : 0)
  }

  #opened(sealed: Uint8Array): Buffer | undefined {
    const { type, bytes } = this.#key
    try {
      return type.decrypt(bytes, SEAL_USAGE[this.#peer], sealed)
    } catch (error) {
      if (error instanceof IntegrityError) return undefined
      throw error
    }
  }

  #checksum(side: Side, message: Uint8Array, header: Uint8Array): Buffer {
    const { type, bytes } = this.#key
    return type.checksum(bytes, SIGN_USAGE[side], Buffer.concat([message, header]))
  }
}

function headerOf(kind: number, flags: number, number: bigint): Buffer {
  const header = Buffer.alloc(HEADER, kind === MIC ? FILLER : 0)
  header.writeUInt16BE(kind)
  header[AT.FLAGS] = flags
  header[AT.FILLER] = FILLER
  header.writeBigUInt64BE(number, AT.NUMBER)
  return header
}

/** Undoes a rotation to the right (4.2.5). */
function unrotated(bytes: Uint8Array, count: number): Uint8Array {
  const at = bytes.length === 0 ? 0 : count % bytes.length
  return at === 0 ? bytes : Buffer.concat([bytes.subarray(at), bytes.subarray(0, at)])
}
