/**
 * What of a target's stream goes to the thread that draws for guests: whole updates, from one on that needs nothing of
 * what came before. So the target is asked for encodings that need nothing, and then for everything; until that has
 * come, or where the thread has fallen behind, updates are left out and it begins anew.
 */
import { Buffer } from 'node:buffer'
import { FRAME, type FrameType } from '../../../recordings/container/frames.ts'
import { ENCODING, isPixelEncoding } from '../codec/encodings.ts'
import { encodePixelFormat, type PixelFormat } from '../codec/pixel-format.ts'
import type { ServerUnit } from '../codec/server-stream.ts'
import type { ToThread } from './messages.ts'

/** Bytes that the thread may have before it: more than a screen of 4K in Raw. */
export const MAX_UNDRAWN = 64 * 1024 * 1024

const STATELESS: ReadonlySet<number> = new Set([
  ENCODING.RAW,
  ENCODING.COPY_RECT,
  ENCODING.RRE,
  ENCODING.HEXTILE,
])

/** Whether rectangles of it can be drawn by somebody who has not seen those before. */
export function isStateless(encoding: number): boolean {
  return STATELESS.has(encoding) || !isPixelEncoding(encoding)
}

export interface GraphicsTapOptions {
  post: (message: ToThread) => void
  /** As it stands now. */
  stream: { readonly width: number; readonly height: number; readonly isInUpdate: boolean }
  /** The target is to send everything once more. */
  askForAll: () => void
}

/** It is told of the stream as the recording is. */
export class GraphicsTap {
  readonly #options: GraphicsTapOptions
  #format: PixelFormat
  /** `waiting`: for the end of the update that is under way; `drawn`: what comes goes to the thread. */
  #state: 'waiting' | 'drawn'
  #isLost = false
  #undrawn = 0
  #pieces: Uint8Array[] = []

  /** `format`: of the updates that follow. */
  constructor(options: GraphicsTapOptions, format: PixelFormat) {
    this.#options = options
    this.#format = format
    this.#state = 'waiting'
    if (!options.stream.isInUpdate) this.#begin()
  }

  /** A unit begins. */
  begin(unit: ServerUnit): void {
    if (unit.kind === 'rectangle' && !isStateless(unit.encoding)) this.#lose()
  }

  /** Of `update`, `rectangle` and `colour-map`; valid during the call. */
  bytes(piece: Uint8Array): void {
    if (this.#state === 'drawn' && !this.#isLost) this.#pieces.push(Buffer.from(piece))
  }

  /** What came together is complete. */
  flush(): void {
    if (this.#pieces.length === 0) return
    this.#frame(FRAME.graphics, Buffer.concat(this.#pieces))
    this.#pieces = []
  }

  updateEnd(): void {
    if (this.#state === 'waiting') this.#begin()
    else this.#recover()
  }

  /** After a loss, when the thread is nearly done with what it has. */
  #recover(): void {
    if (!this.#isLost || this.#undrawn > MAX_UNDRAWN / 2) return
    this.#begin()
    this.#options.askForAll()
  }

  pixelFormat(format: PixelFormat): void {
    this.#format = format
    this.flush()
    if (this.#state === 'drawn') this.#frame(FRAME.pixelFormat, encodePixelFormat(format))
  }

  pointer(payload: Uint8Array): void {
    if (this.#state === 'drawn') this.#frame(FRAME.pointer, payload)
  }

  /** The thread has drawn so much. */
  drawn(bytes: number): void {
    this.#undrawn -= bytes
    if (!this.#options.stream.isInUpdate) this.#recover()
  }

  #begin(): void {
    const { width, height } = this.#options.stream
    this.#state = 'drawn'
    this.#isLost = false
    this.#pieces = []
    this.#options.post({ kind: 'begin', width, height })
    this.#frame(FRAME.pixelFormat, encodePixelFormat(this.#format))
  }

  #lose(): void {
    this.#isLost = true
    this.#pieces = []
  }

  #frame(type: FrameType, payload: Uint8Array): void {
    this.#undrawn += payload.length
    if (this.#undrawn > MAX_UNDRAWN && type === FRAME.graphics) {
      this.#undrawn -= payload.length
      this.#lose()
      return
    }
    this.#options.post({ kind: 'frame', type, payload })
  }
}
