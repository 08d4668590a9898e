/**
 * The bytes of a server after its acceptance (RFC 1282): output, and control bytes, which are urgent data. A
 * socket reports the place of an urgent byte only after the bytes before it were read.
 */
import { CONTROL, isControl } from './control.ts'

export interface ServerStreamVisitor {
  /** Valid during the call only. */
  data(bytes: Uint8Array): void
  /** Bits of CONTROL. */
  control(byte: number): void
}

export class ServerStream {
  readonly #visitor: ServerStreamVisitor
  /** Missing bytes of the last character, if the output is UTF-8. */
  #missing = 0
  #hasAskedForSize = false

  constructor(visitor: ServerStreamVisitor) {
    this.#visitor = visitor
  }

  /**
   * `isUrgent`: the first byte was announced as urgent. It is not announced if a read begins with it, so the
   * first request for the window's size, and later ones that come alone, are recognized without that if they
   * cannot be part of a character.
   */
  feed(chunk: Uint8Array, isUrgent: boolean): void {
    const [first] = chunk
    if (first === undefined) return
    const isFirstRequest = first === CONTROL.WINDOW && !this.#hasAskedForSize
    const isAlone = chunk.length === 1 && (first & CONTROL.WINDOW) !== 0
    const isKnown = isUrgent || ((isFirstRequest || isAlone) && this.#missing === 0)
    if (!isControl(first) || !isKnown) {
      this.#output(chunk)
      return
    }
    if ((first & CONTROL.WINDOW) !== 0) this.#hasAskedForSize = true
    this.#visitor.control(first)
    if (chunk.length > 1) this.#output(chunk.subarray(1))
  }

  #output(bytes: Uint8Array): void {
    // A character has four bytes at most.
    for (const byte of bytes.subarray(-4)) this.#missing = missingAfter(byte, this.#missing)
    this.#visitor.data(bytes)
  }
}

function missingAfter(byte: number, missing: number): number {
  if (byte >= 0xf0) return 3
  if (byte >= 0xe0) return 2
  if (byte >= 0xc0) return 1
  return byte >= 0x80 && missing > 0 ? missing - 1 : 0
}
