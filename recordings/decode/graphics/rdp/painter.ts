/** Draws the updates of an RDP target's desktop in order (docs/recording-format.md). */
import { FRAME, type Frame } from '../../../container/frames.ts'
import { type Cursor, cursorArea, drawCursor, type Point } from '../cursor.ts'
import { BOUNDARY, type Decoding, MORE } from '../decoding.ts'
import { parseDesktopSize, parsePointer } from '../events.ts'
import type { Framebuffer } from '../framebuffer.ts'
import { MalformedGraphics } from '../malformed.ts'
import type { Painter, PainterState } from '../painter.ts'
import { Pump } from '../pump.ts'
import type { Rectangle, Size } from '../rectangle.ts'
import { ARROW } from './arrow.ts'
import { RdpDesktop } from './desktop.ts'
import { MAX_UPDATE, MESSAGE_HEAD } from './message.ts'
import { packState, unpackState } from './state.ts'

export class RdpPainter implements Painter {
  readonly #desktop: RdpDesktop
  readonly #pump: Pump
  #mouse: Point | undefined
  #flaws = 0

  /**
   * Starts black, in the size of the target's Demand Active. Throws MalformedGraphics if the size is too
   * large.
   */
  constructor(size: Size) {
    this.#desktop = new RdpDesktop(size)
    this.#pump = new Pump(this.#messages())
  }

  /**
   * Continues from a snapshot with the pixels of that moment. Throws MalformedGraphics if the snapshot is
   * invalid.
   */
  static restore(state: PainterState, framebuffer: Framebuffer): RdpPainter {
    const painter = new RdpPainter(framebuffer)
    painter.framebuffer.pixels.set(framebuffer.pixels)
    const { mouse, ...rest } = unpackState(state)
    painter.#desktop.restore(rest)
    painter.#mouse = mouse
    return painter
  }

  get framebuffer(): Framebuffer {
    return this.#desktop.framebuffer
  }

  get stopped(): string | undefined {
    return this.#pump.stopped
  }

  /**
   * Number of updates that could not be drawn completely. Each is complete in itself, so the next ones are
   * drawn.
   */
  get flaws(): number {
    return this.#flaws
  }

  get painted(): number {
    return this.#desktop.painted
  }

  get isPaused(): boolean {
    return this.#pump.isPaused
  }

  get isAtPlace(): boolean {
    return this.#pump.isAtPlace
  }

  apply({ type, payload }: Pick<Frame, 'type' | 'payload'>): void {
    if (type === FRAME.graphics) this.#pump.takeAll(payload)
    else if (type === FRAME.desktopSize) this.#resize(payload)
    else if (type === FRAME.pointer) this.#mouse = parsePointer(payload) ?? this.#mouse
  }

  paint(graphics: Uint8Array): number {
    return this.#pump.take(graphics)
  }

  picture(): Framebuffer {
    const drawn = this.#drawnPointer
    if (!drawn) return this.framebuffer
    const picture = this.framebuffer.clone()
    drawCursor(picture, drawn.cursor, drawn.at)
    return picture
  }

  get pointer(): Rectangle | undefined {
    const drawn = this.#drawnPointer
    return drawn && cursorArea(this.framebuffer, drawn.cursor, drawn.at)
  }

  /** The pointer at the user's position, or else at the target's. */
  get #drawnPointer(): { cursor: Cursor; at: Point } | undefined {
    const { pointer, position } = this.#desktop
    const at = this.#mouse ?? position
    if (pointer === 'hidden' || !at) return undefined
    return { cursor: pointer === 'default' ? ARROW : pointer, at }
  }

  snapshot(): PainterState | undefined {
    if (!this.#pump.isAtPlace) return undefined
    return packState({ ...this.#desktop.state, mouse: this.#mouse })
  }

  #resize(payload: Uint8Array): void {
    const size = parseDesktopSize(payload)
    try {
      if (size && this.stopped === undefined) this.framebuffer.resize(size)
    } catch (error) {
      this.#pump.stop(error)
    }
  }

  *#messages(): Decoding {
    const source = this.#pump.source
    for (;;) {
      while (!source.has(1)) yield MORE
      this.#pump.isBetween = false
      while (!source.has(MESSAGE_HEAD)) yield MORE
      const code = source.u8()
      const length = source.u32()
      if (MAX_UPDATE < length) {
        throw new MalformedGraphics(`expected an update of at most ${MAX_UPDATE} bytes, got ${length}`)
      }
      while (!source.has(length)) yield MORE
      // Copy the data: it has to outlast pauses.
      yield* this.#update(code, source.take(length).slice())
      this.#pump.isBetween = true
      yield BOUNDARY
    }
  }

  *#update(code: number, data: Uint8Array): Decoding {
    try {
      yield* this.#desktop.update(code, data)
    } catch (error) {
      if (!(error instanceof MalformedGraphics)) throw error
      this.#flaws += 1
    }
  }
}
