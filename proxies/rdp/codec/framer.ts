/**
 * Cuts an RDP peer's stream into PDUs: TPKT (RFC 1006 section 6: 03 00 and a length) and fast path
 * (MS-RDPBCGR 2.2.8.1.2 and 2.2.9.1.2: a length of one or two bytes).
 */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'

export const TPKT_VERSION = 3
/** The length of a TPKT has 16 bits. */
export const TPKT_LIMIT = 0xffff
/** The length of a fast-path PDU has 15 bits. */
export const FAST_PATH_LIMIT = 0x7fff

const TPKT_HEADER = 4
/** Bytes of a TPKT header and the shortest TPDU of X.224 class 0: LI, code, EOT. */
const TPKT_LEAST = 7
const NOTHING = Buffer.alloc(0)

/** Reports whether the PDU with this first byte is fast path. */
export function isFastPath(first: number): boolean {
  return (first & 3) === 0
}

export interface FramerOptions {
  /** Bytes of one PDU, including headers. Default: the most that the length fields allow. */
  limit?: number
  /** Accepts fast-path PDUs, which are valid from the first Demand Active on. */
  fastPath?: boolean
}

/** Frames one direction of a connection. Holds at most one PDU and the rest of its last chunk. */
export class Framer {
  #limit: number
  #fastPath: boolean
  #held: Buffer = NOTHING
  #heldLength = 0

  constructor(options: FramerOptions = {}) {
    this.#limit = options.limit ?? TPKT_LIMIT
    this.#fastPath = options.fastPath ?? false
  }

  /** Changes the limit and whether fast path is accepted, from the next PDU on. */
  allow(options: Required<FramerOptions>): void {
    this.#limit = options.limit
    this.#fastPath = options.fastPath
  }

  /** Bytes of the incomplete PDU. */
  get pending(): number {
    return this.#heldLength
  }

  /**
   * Calls `take` with each whole PDU; a PDU is a view valid during the call only. Stops if `take` returns
   * false, and returns the remaining bytes; otherwise the result is empty. Throws MalformedError.
   */
  feed(chunk: Uint8Array, take: (pdu: Uint8Array) => boolean): Uint8Array {
    let rest = chunk
    while (rest.length > 0) {
      if (this.#heldLength === 0) {
        const length = this.#lengthOf(rest)
        if (length === undefined || rest.length < length) {
          this.#hold(rest, length)
          return NOTHING
        }
        const goesOn = take(rest.subarray(0, length))
        rest = rest.subarray(length)
        if (!goesOn) return rest
        continue
      }
      // Completes the header first, then the PDU.
      const known = this.#lengthOf(this.#held.subarray(0, this.#heldLength))
      const wanted = (known ?? this.#heldLength + 1) - this.#heldLength
      const piece = rest.subarray(0, wanted)
      rest = rest.subarray(piece.length)
      this.#hold(piece, known)
      // A header is judged as soon as it is there: nothing may follow it.
      const length = known ?? this.#lengthOf(this.#held.subarray(0, this.#heldLength))
      if (length === undefined || this.#heldLength < length) continue
      const pdu = this.#held.subarray(0, length)
      this.#held = NOTHING
      this.#heldLength = 0
      if (!take(pdu)) return rest
    }
    return NOTHING
  }

  #hold(piece: Uint8Array, length: number | undefined): void {
    const needed = Math.max(this.#heldLength + piece.length, length ?? TPKT_HEADER)
    if (this.#held.length < needed) {
      const larger = Buffer.allocUnsafe(needed)
      larger.set(this.#held.subarray(0, this.#heldLength))
      this.#held = larger
    }
    this.#held.set(piece, this.#heldLength)
    this.#heldLength += piece.length
  }

  /** Returns the length of the PDU that begins here, or undefined if more bytes are needed. */
  #lengthOf(bytes: Uint8Array): number | undefined {
    const first = bytes[0]!
    if (first === TPKT_VERSION) {
      if (bytes.length < TPKT_HEADER) return undefined
      return this.#checked('TPKT', (bytes[2]! << 8) | bytes[3]!, TPKT_LEAST)
    }
    if (!this.#fastPath || !isFastPath(first)) {
      const wanted = this.#fastPath ? 'TPKT or a fast-path PDU' : 'TPKT'
      throw new MalformedError(`rdp: ${wanted} was expected, found a first byte of 0x${first.toString(16)}`)
    }
    if (bytes.length < 2) return undefined
    const second = bytes[1]!
    if (second < 0x80) return this.#checked('fast path', second, 3)
    if (bytes.length < 3) return undefined
    return this.#checked('fast path', ((second & 0x7f) << 8) | bytes[2]!, 4)
  }

  #checked(what: string, length: number, least: number): number {
    if (length < least || this.#limit < length) {
      throw new MalformedError(
        `rdp: ${what}: a length of ${least} to ${this.#limit} bytes was expected, found ${length}`,
      )
    }
    return length
  }
}

/** Builds a TPKT around the parts. Throws RangeError if they are too long for one. */
export function buildTpkt(...parts: Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, TPKT_HEADER)
  if (TPKT_LIMIT < length) throw new RangeError(`a TPKT of ${length} bytes cannot be sent`)
  return Buffer.concat([Uint8Array.of(TPKT_VERSION, 0, length >> 8, length & 0xff), ...parts], length)
}
