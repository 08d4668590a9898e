/** Views of one buffer that follow each other, put together again: a chunk of many rectangles is one piece of output. */

export class Run {
  readonly #take: (bytes: Uint8Array) => void
  #buffer: ArrayBufferLike | undefined
  #from = 0
  #to = 0

  /** `take` gets what belongs together, as a view. */
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

  /** Nothing more belongs to it: before the buffer is written anew, and before anything else is taken. */
  end(): void {
    if (this.#buffer && this.#from < this.#to) {
      const bytes = new Uint8Array(this.#buffer, this.#from, this.#to - this.#from)
      this.#buffer = undefined
      this.#take(bytes)
    }
    this.#buffer = undefined
  }
}
