/** Bytes that a decoder takes in order, as far as they have come. */

export abstract class Source {
  protected buffer: Uint8Array = new Uint8Array(0)
  protected at = 0
  protected end = 0

  /** Whether the next `count` bytes are there; if not, the decoder comes back when there are more. */
  has(count: number): boolean {
    return this.end - this.at >= count || this.fill(count)
  }

  /** This, `u16` … and `take` only after `has`. */
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

  /** The next byte, which is not taken. */
  peek(): number {
    return this.buffer[this.at]!
  }

  /** A view, until `has` is called again. */
  take(count: number): Uint8Array {
    const taken = this.buffer.subarray(this.at, this.at + count)
    this.at += count
    return taken
  }

  /** Tries to get bytes until there are `count`. */
  protected abstract fill(count: number): boolean
}

/** What comes from the recording, in pieces. */
export class PieceSource extends Source {
  /** Bytes that were left of pieces; undefined while `buffer` is a piece itself. */
  #store: Uint8Array | undefined

  /** Takes a piece, which must not change before the next call or `keep`. */
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

  /** Bytes that are there. */
  get length(): number {
    return this.end - this.at
  }

  /** The next bytes, which are not taken. */
  view(count: number): Uint8Array {
    return this.buffer.subarray(this.at, this.at + count)
  }

  /** The last piece may change from now on: what is left of it is copied. */
  keep(): void {
    if (this.length > 0) this.#reserve(0)
    else this.buffer = new Uint8Array(0)
  }

  /** Drops what is left of the last piece, which is pushed again: how many bytes that are. */
  giveBack(piece: Uint8Array): number {
    const count = Math.min(this.length, piece.length)
    this.end -= count
    return count
  }

  protected fill(): boolean {
    return false
  }

  /** Twice what is there at a time, so that many small pieces cost no more than a large one. */
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
