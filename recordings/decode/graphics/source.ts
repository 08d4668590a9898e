/** Bytes that a decoder reads in order, as far as they have arrived. */

export abstract class Source {
  protected buffer: Uint8Array = new Uint8Array(0)
  protected at = 0
  protected end = 0

  /** Returns whether the next `count` bytes have arrived. If not, the decoder waits for more. */
  has(count: number): boolean {
    return this.end - this.at >= count || this.fill(count)
  }

  /** Call this, `u16` … and `take` only after `has`. */
  u8(): number {
    return this.buffer[this.at++]!
  }

  u16(): number {
    return (this.u8() << 8) | this.u8()
  }

  u32(): number {
    return this.u16() * 0x1_0000 + this.u16()
  }

  i32(): number {
    return this.u32() | 0
  }

  /** Returns the next byte without consuming it. */
  peek(): number {
    return this.buffer[this.at]!
  }

  /** Returns a view, valid until `has` is called again. */
  take(count: number): Uint8Array {
    const taken = this.buffer.subarray(this.at, this.at + count)
    this.at += count
    return taken
  }

  /** Tries to get bytes until there are `count`. */
  protected abstract fill(count: number): boolean
}

/** The bytes of a recording, in pieces. */
export class PieceSource extends Source {
  /** Remaining bytes of earlier pieces. Undefined while `buffer` is a piece itself. */
  #store: Uint8Array | undefined

  /** Adds a piece, which must not change before the next call or `keep`. */
  push(piece: Uint8Array): void {
    if (this.length === 0) {
      this.buffer = piece
      this.#store = undefined
      this.at = 0
      this.end = piece.length
    } else {
      this.#reserve(piece.length)
      this.buffer.set(piece, this.end)
      this.end += piece.length
    }
  }

  /** Number of available bytes. */
  get length(): number {
    return this.end - this.at
  }

  /** Returns the next bytes without consuming them. */
  view(count: number): Uint8Array {
    return this.buffer.subarray(this.at, this.at + count)
  }

  /** Copies the rest of the last piece, which may change from now on. */
  keep(): void {
    if (this.length > 0) this.#reserve(0)
    else this.buffer = new Uint8Array(0)
  }

  /** Drops the rest of the last piece and returns its length: the caller pushes those bytes again. */
  giveBack(piece: Uint8Array): number {
    const count = Math.min(this.length, piece.length)
    this.end -= count
    return count
  }

  protected fill(): boolean {
    return false
  }

  /** Doubles the buffer, so that many small pieces cost no more than a large one. */
  #reserve(count: number): void {
    const { length } = this
    if (this.#store && this.#store.length - this.end >= count) return
    const store =
      this.#store && this.#store.length >= 2 * (length + count)
        ? this.#store
        : new Uint8Array(2 * (length + count))
    store.set(this.buffer.subarray(this.at, this.end))
    this.#store = store
    this.buffer = store
    this.at = 0
    this.end = length
  }
}
