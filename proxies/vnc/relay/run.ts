/** Joins consecutive views of one buffer: a chunk of many rectangles becomes one piece of output. */

export class Run {
  readonly #take: (bytes: Uint8Array) => void
  #buffer: ArrayBufferLike | undefined
  #from = 0
  #to = 0

  /** `take` receives each joined piece, as a view. */
  constructor(take: (bytes: Uint8Array) => void) {
    this.#take = take
  }

  add(piece: Uint8Array): void {
    if (piece.buffer !== this.#buffer || piece.byteOffset !== this.#to) {
      this.end()
      this.#buffer = piece.buffer
      this.#from = this.#to = piece.byteOffset
    }
    this.#to += piece.length
  }

  /** Ends the piece: called before the buffer is overwritten, and before other bytes are sent. */
  end(): void {
    if (this.#buffer && this.#from < this.#to) {
      const bytes = new Uint8Array(this.#buffer, this.#from, this.#to - this.#from)
      this.#buffer = undefined
      this.#take(bytes)
    }
    this.#buffer = undefined
  }
}
