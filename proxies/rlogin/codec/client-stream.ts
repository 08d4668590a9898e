/** The bytes of a client after the handshake (RFC 1282): keys, and messages about its window between them. */
import { Buffer } from 'node:buffer'
import { uint16At, uint16Bytes } from '../../bytes/uint16.ts'

/** All zero if unknown. */
export interface WindowSize {
  columns: number
  rows: number
  pixelWidth: number
  pixelHeight: number
}

/** 0xFF 0xFF `ss`, then rows, columns, width and height in pixels as uint16. */
const COOKIE = Uint8Array.of(0xff, 0xff, 0x73, 0x73)
const MESSAGE_LENGTH = COOKIE.length + 8

export function buildWindowSize({ columns, rows, pixelWidth, pixelHeight }: WindowSize): Uint8Array {
  const numbers = [rows, columns, pixelWidth, pixelHeight].flatMap(uint16Bytes)
  return Uint8Array.of(...COOKIE, ...numbers)
}

export interface ClientStreamVisitor {
  /** Valid during the call only. */
  data(bytes: Uint8Array): void
  windowSize(size: WindowSize): void
}

export class ClientStream {
  readonly #visitor: ClientStreamVisitor
  /** A possible beginning of a message. */
  #held = Buffer.alloc(0)

  constructor(visitor: ClientStreamVisitor) {
    this.#visitor = visitor
  }

  feed(chunk: Uint8Array): void {
    let bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    this.#held = Buffer.alloc(0)
    while (bytes.length > 0) {
      const at = beginOf(bytes)
      if (at > 0) this.#visitor.data(bytes.subarray(0, at))
      bytes = bytes.subarray(at)
      if (bytes.length < MESSAGE_LENGTH) break
      this.#visitor.windowSize(parseWindowSize(bytes.subarray(COOKIE.length, MESSAGE_LENGTH)))
      bytes = bytes.subarray(MESSAGE_LENGTH)
    }
    this.#held = Buffer.from(bytes)
  }

  /** True while bytes wait for the bytes after them. */
  get isHolding(): boolean {
    return this.#held.length > 0
  }

  /**
   * Returns the waiting bytes as keys, such as 0xFF in ISO 8859-1, because nothing followed them for a while.
   */
  release(): void {
    const held = this.#held
    this.#held = Buffer.alloc(0)
    if (held.length > 0) this.#visitor.data(held)
  }
}

/** Returns where a message begins, or could begin at the end; the length if there is none. */
function beginOf(bytes: Uint8Array): number {
  let at = bytes.indexOf(COOKIE[0]!)
  while (at >= 0) {
    const end = Math.min(bytes.length - at, COOKIE.length)
    if (COOKIE.subarray(0, end).every((byte, index) => bytes[at + index] === byte)) return at
    at = bytes.indexOf(COOKIE[0]!, at + 1)
  }
  return bytes.length
}

function parseWindowSize(body: Uint8Array): WindowSize {
  const [rows, columns, pixelWidth, pixelHeight] = [0, 2, 4, 6].map((at) => uint16At(body, at))
  return { rows: rows!, columns: columns!, pixelWidth: pixelWidth!, pixelHeight: pixelHeight! }
}
