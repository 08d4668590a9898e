/**
 * Selects the part of a target's stream for the thread that draws for guests: complete updates, beginning
 * with one that depends on no earlier data. For that the target is asked for stateless encodings and then for
 * everything. Updates before that, or while the thread is too far behind, are dropped, and the thread starts
 * anew.
 */
import { Buffer } from 'node:buffer'
import { FRAME, type FrameType } from '../../../recordings/container/frames.ts'
import { ENCODING, isPixelEncoding } from '../codec/encodings.ts'
import { encodePixelFormat, type PixelFormat } from '../codec/pixel-format.ts'
import type { ServerUnit } from '../codec/server-stream.ts'
import type { ToThread } from './messages.ts'

/** Bytes that may wait for the thread: more than a 4K screen in Raw. */
export const MAX_UNDRAWN = 64 * 1024 * 1024

const STATELESS: ReadonlySet<number> = new Set([
  ENCODING.RAW,
  ENCODING.COPY_RECT,
  ENCODING.RRE,
  ENCODING.HEXTILE,
])

/** Returns true if its rectangles can be drawn without the earlier ones. */
export function isStateless(encoding: number): boolean {
  return STATELESS.has(encoding) || !isPixelEncoding(encoding)
}

export interface GraphicsTapOptions {
  post: (message: ToThread) => void
  /** The present state of the target's stream. */
  stream: { readonly width: number; readonly height: number; readonly isInUpdate: boolean }
  /** Requests the whole screen once more. */
  askForAll: () => void
}

/** Receives the stream in parallel to the recording. */
export class GraphicsTap {
  readonly #options: GraphicsTapOptions
  #format: PixelFormat
  /** `waiting`: for the end of the current update; `drawn`: updates go to the thread. */
  #state: 'waiting' | 'drawn'
  #isLost = false
  #undrawn = 0
  #pieces: Uint8Array[] = []

  /** `format`: of the following updates. */
  constructor(options: GraphicsTapOptions, format: PixelFormat) {
    this.#options = options
    this.#format = format
    this.#state = 'waiting'
    if (!options.stream.isInUpdate) this.#begin()
  }

  /** Called at the beginning of a unit. */
  begin(unit: ServerUnit): void {
    if (unit.kind === 'rectangle' && !isStateless(unit.encoding)) this.#lose()
  }

  /** Receives bytes of `update`, `rectangle` and `colour-map`; valid during the call. */
  bytes(piece: Uint8Array): void {
    if (this.#state === 'drawn' && !this.#isLost) this.#pieces.push(Buffer.from(piece))
  }

  /** Sends the gathered bytes at the end of a chunk. */
  flush(): void {
    if (this.#pieces.length === 0) return
    this.#frame(FRAME.graphics, Buffer.concat(this.#pieces))
    this.#pieces = []
  }

  updateEnd(): void {
    if (this.#state === 'waiting') this.#begin()
    else this.#recover()
  }

  /** Starts anew after a loss, once the thread has nearly caught up. */
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

  /** Counts bytes that the thread has drawn. */
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
