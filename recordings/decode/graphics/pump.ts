/** Feeds the decoder of a graphic channel with its bytes: what painters of every protocol do alike. */
import { type Decoding, MORE, PAUSE, type Wait } from './decoding.ts'
import { MalformedGraphics } from './malformed.ts'
import { PieceSource } from './source.ts'

export class Pump {
  /** Where the decoder takes its bytes from. */
  readonly source = new PieceSource()
  /** The decoder's word: of what comes next nothing is read yet. */
  isBetween = true
  readonly #decoding: Decoding
  #isPaused = false
  #stopped: string | undefined

  constructor(decoding: Decoding) {
    this.#decoding = decoding
  }

  /** Why nothing more is decoded. */
  get stopped(): string | undefined {
    return this.#stopped
  }

  /** More can be painted without another byte. */
  get isPaused(): boolean {
    return this.#isPaused
  }

  /** A snapshot may be taken: the bytes so far do not end in the middle of something. */
  get isAtPlace(): boolean {
    return this.isBetween && !this.#isPaused && this.source.length === 0 && this.#stopped === undefined
  }

  /** Decodes some of a piece and says how many of its bytes that were, as `Painter.paint` does. */
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

  /** The stream is not what it should be; any other error is thrown on. */
  stop(error: unknown): void {
    if (!(error instanceof MalformedGraphics)) throw error
    this.#stopped = error.message
    this.#isPaused = false
  }
}
