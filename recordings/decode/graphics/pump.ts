/** Feeds the bytes of a graphic channel to its decoder: the part that painters of all protocols share. */
import { type Decoding, MORE, PAUSE, type Wait } from './decoding.ts'
import { MalformedGraphics } from './malformed.ts'
import { PieceSource } from './source.ts'

export class Pump {
  /** Source of the decoder's bytes. */
  readonly source = new PieceSource()
  /** Set by the decoder while no byte of the next message has been read. */
  isBetween = true
  readonly #decoding: Decoding
  #isPaused = false
  #stopped: string | undefined

  constructor(decoding: Decoding) {
    this.#decoding = decoding
  }

  /** Reason why decoding has stopped. */
  get stopped(): string | undefined {
    return this.#stopped
  }

  /** True if more can be painted without another byte. */
  get isPaused(): boolean {
    return this.#isPaused
  }

  /** True if a snapshot may be taken: the bytes so far do not end within a message or rectangle. */
  get isAtPlace(): boolean {
    return this.isBetween && !this.#isPaused && this.source.length === 0 && this.#stopped === undefined
  }

  /** Decodes a part of a piece and returns the bytes consumed, as `Painter.paint` does. */
  take(piece: Uint8Array): number {
    if (this.#stopped !== undefined) return piece.length
    this.source.push(piece)
    let waits: Wait | undefined
    try {
      waits = this.#decoding.next().value ?? undefined
    } catch (error) {
      this.stop(error)
      return piece.length
    }
    this.#isPaused = waits === PAUSE
    if (waits !== MORE) return piece.length - this.source.giveBack(piece)
    this.source.keep()
    return piece.length
  }

  /** Decodes all of a piece. */
  takeAll(piece: Uint8Array): void {
    let rest = piece
    do rest = rest.subarray(this.take(rest))
    while (rest.length > 0 || this.#isPaused)
  }

  /** Stops on a malformed stream; any other error is thrown again. */
  stop(error: unknown): void {
    if (!(error instanceof MalformedGraphics)) throw error
    this.#stopped = error.message
    this.#isPaused = false
  }
}
