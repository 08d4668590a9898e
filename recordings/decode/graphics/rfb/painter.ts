/**
 * Draws a VNC target's messages: FramebufferUpdate and SetColourMapEntries (RFC 6143 7.6.1, 7.6.2), byte for
 * byte.
 */
import { FRAME, type Frame } from '../../../container/frames.ts'
import { type Cursor, cursorArea, drawCursor } from '../cursor.ts'
import { BOUNDARY, type Decoding, Easel, MORE, PAUSE } from '../decoding.ts'
import { parsePointer } from '../events.ts'
import { Framebuffer, UNDRAWN } from '../framebuffer.ts'
import { InflateStream } from '../inflate.ts'
import { MalformedGraphics, UndrawableGraphics } from '../malformed.ts'
import type { Painter, PainterState } from '../painter.ts'
import { Pump } from '../pump.ts'
import type { Rectangle, Size } from '../rectangle.ts'
import { decodeAlphaCursor, decodeCursor, decodeXCursor } from './cursor.ts'
import { decodeHextile } from './hextile.ts'
import { PixelReaders, parsePixelFormat } from './pixel-format.ts'
import { decodeCopyRect, decodeRaw, decodeRre, decodeZlib } from './raw.ts'
import { packState, unpackState } from './state.ts'
import { TightDecoder } from './tight.ts'
import { decodeZrle } from './zrle.ts'

const MESSAGE = { framebufferUpdate: 0, setColourMapEntries: 1 }
const RECTANGLE_HEAD = 12
const MAX_NAME = 4096
const SCREEN_LENGTH = 16

const ENCODING = {
  raw: 0,
  copyRect: 1,
  rre: 2,
  hextile: 5,
  zlib: 6,
  tight: 7,
  zrle: 16,
  desktopSize: -223,
  lastRect: -224,
  cursor: -239,
  xCursor: -240,
  qemuKey: -258,
  qemuLed: -261,
  desktopName: -307,
  extendedDesktopSize: -308,
  cursorWithAlpha: -314,
  extendedMouseButtons: -316,
} as const

export class RfbPainter implements Painter {
  readonly framebuffer: Framebuffer
  readonly #easel: Easel
  readonly #pump: Pump
  #readers: PixelReaders | undefined
  /** Pixel format that applies from the next message on. */
  #nextFormat: Uint8Array | undefined
  #format: Uint8Array | undefined
  readonly #zlib = new InflateStream()
  readonly #zrle = new InflateStream()
  readonly #tight = new TightDecoder()
  #cursor: Cursor | undefined
  #pointer: { x: number; y: number } | undefined
  /** Rectangles of the current update that have not begun. */
  #rectangles = 0
  #flaw: string | undefined

  /**
   * Starts black, in the size of the target's ServerInit, or with a framebuffer. Throws MalformedGraphics if
   * the size is too large.
   */
  constructor(size: Size | Framebuffer) {
    this.framebuffer = size instanceof Framebuffer ? size : new Framebuffer(size)
    this.#easel = new Easel(this.framebuffer)
    this.#pump = new Pump(this.#messages())
  }

  /**
   * Continues from a snapshot and paints on the pixels of that moment. Throws MalformedGraphics if the
   * snapshot is invalid.
   */
  static restore(state: PainterState, framebuffer: Framebuffer): RfbPainter {
    const painter = new RfbPainter(framebuffer)
    painter.#restore(state)
    return painter
  }

  get stopped(): string | undefined {
    return this.#pump.stopped
  }

  /** Reason why the last grey rectangle could not be drawn. */
  get flaw(): string | undefined {
    return this.#flaw
  }

  get painted(): number {
    return this.#easel.painted
  }

  get isPaused(): boolean {
    return this.#pump.isPaused
  }

  get isAtPlace(): boolean {
    return this.#pump.isAtPlace
  }

  apply({ type, payload }: Pick<Frame, 'type' | 'payload'>): void {
    if (type === FRAME.graphics) this.#pump.takeAll(payload)
    else if (type === FRAME.pixelFormat) this.#nextFormat = payload.slice()
    else if (type === FRAME.pointer) this.#pointer = parsePointer(payload) ?? this.#pointer
  }

  paint(graphics: Uint8Array): number {
    return this.#pump.take(graphics)
  }

  picture(): Framebuffer {
    if (!this.#cursor || !this.#pointer) return this.framebuffer
    const picture = this.framebuffer.clone()
    drawCursor(picture, this.#cursor, this.#pointer)
    return picture
  }

  get pointer(): Rectangle | undefined {
    const { framebuffer } = this
    return this.#cursor && this.#pointer && cursorArea(framebuffer, this.#cursor, this.#pointer)
  }

  snapshot(): PainterState | undefined {
    if (!this.#pump.isAtPlace) return undefined
    const streams = [this.#zlib, this.#zrle, ...this.#tight.streams].map((stream) => stream.snapshot())
    if (streams.includes(undefined)) return undefined
    return packState({
      rectangles: this.#rectangles,
      format: this.#format,
      nextFormat: this.#nextFormat,
      colours: this.#readers?.colours,
      streams: streams as (Uint8Array | 'broken')[],
      cursor: this.#cursor,
      pointer: this.#pointer,
    })
  }

  #restore(packed: PainterState): void {
    const state = unpackState(packed)
    this.#rectangles = state.rectangles
    this.#format = state.format
    this.#nextFormat = state.nextFormat
    if (state.format) this.#readers = new PixelReaders(parsePixelFormat(state.format), state.colours)
    const streams = [this.#zlib, this.#zrle, ...this.#tight.streams]
    for (const [at, stream] of streams.entries()) stream.restore(state.streams[at] ?? new Uint8Array(0))
    this.#cursor = state.cursor
    this.#pointer = state.pointer
  }

  *#messages(): Decoding {
    for (;;) {
      while (this.#rectangles > 0) {
        this.#rectangles--
        yield* this.#rectangle()
        this.#pump.isBetween = true
        yield BOUNDARY
      }
      while (!this.#pump.source.has(1)) yield MORE
      this.#pump.isBetween = false
      this.#takeFormat()
      const type = this.#pump.source.u8()
      if (type === MESSAGE.framebufferUpdate) yield* this.#update()
      else if (type === MESSAGE.setColourMapEntries) yield* this.#colours()
      else throw new MalformedGraphics(`expected a message of VNC that draws, got one of type ${type}`)
      this.#pump.isBetween = true
      yield BOUNDARY
    }
  }

  #takeFormat(): void {
    if (!this.#nextFormat) return
    this.#readers = new PixelReaders(parsePixelFormat(this.#nextFormat), this.#readers?.colours)
    this.#format = this.#nextFormat
    this.#nextFormat = undefined
  }

  *#update(): Decoding {
    while (!this.#pump.source.has(3)) yield MORE
    this.#pump.source.u8()
    this.#rectangles = this.#pump.source.u16()
  }

  *#colours(): Decoding {
    while (!this.#pump.source.has(5)) yield MORE
    this.#pump.source.u8()
    const first = this.#pump.source.u16()
    const count = this.#pump.source.u16()
    for (let at = first; at < first + count; at++) {
      while (!this.#pump.source.has(6)) yield MORE
      this.#readers?.setColour(at, this.#pump.source.u16(), this.#pump.source.u16(), this.#pump.source.u16())
    }
  }

  *#rectangle(): Decoding {
    const source = this.#pump.source
    while (!source.has(RECTANGLE_HEAD)) yield MORE
    this.#pump.isBetween = false
    const rectangle = { x: source.u16(), y: source.u16(), width: source.u16(), height: source.u16() }
    const encoding = source.i32()
    const readers = this.#readers
    if (!readers) throw new MalformedGraphics('expected a pixel format before the first rectangle')
    const decoding = this.#pixels(rectangle, encoding, readers)
    if (!decoding) {
      yield* this.#pseudo(rectangle, encoding, readers)
      return
    }
    this.framebuffer.requireInside(rectangle)
    try {
      yield* decoding
    } catch (error) {
      if (!(error instanceof UndrawableGraphics)) throw error
      this.#flaw = error.message
      this.framebuffer.fill(rectangle, UNDRAWN)
      if (this.#easel.count(rectangle.width * rectangle.height)) yield PAUSE
    }
    this.framebuffer.touch(rectangle)
  }

  #pixels(rectangle: Rectangle, encoding: number, readers: PixelReaders): Decoding | undefined {
    const source = this.#pump.source
    const easel = this.#easel
    switch (encoding) {
      case ENCODING.raw:
        return decodeRaw(source, rectangle, readers.pixel, easel)
      case ENCODING.copyRect:
        return decodeCopyRect(source, rectangle, easel)
      case ENCODING.rre:
        return decodeRre(source, rectangle, readers.pixel, easel)
      case ENCODING.hextile:
        return decodeHextile(source, rectangle, readers.pixel, easel)
      case ENCODING.zlib:
        return decodeZlib(source, rectangle, readers.pixel, easel, this.#zlib)
      case ENCODING.zrle:
        return decodeZrle(source, rectangle, readers.compact, easel, this.#zrle)
      case ENCODING.tight:
        return this.#tight.decode(source, rectangle, readers, easel)
      default:
        return undefined
    }
  }

  /** Reads rectangles that paint nothing. */
  *#pseudo(rectangle: Rectangle, encoding: number, readers: PixelReaders): Decoding {
    const source = this.#pump.source
    switch (encoding) {
      case ENCODING.lastRect:
        this.#rectangles = 0
        return
      case ENCODING.desktopSize:
        this.framebuffer.resize(rectangle)
        return
      case ENCODING.extendedDesktopSize:
        yield* this.#extendedDesktopSize(rectangle)
        return
      case ENCODING.cursor:
        this.#cursor = yield* decodeCursor(source, rectangle, readers.pixel)
        return
      case ENCODING.xCursor:
        this.#cursor = yield* decodeXCursor(source, rectangle)
        return
      case ENCODING.cursorWithAlpha:
        this.#cursor = yield* decodeAlphaCursor(source, rectangle)
        return
      case ENCODING.desktopName:
        yield* this.#name()
        return
      case ENCODING.qemuLed:
        while (!source.has(1)) yield MORE
        source.u8()
        return
      case ENCODING.qemuKey:
      case ENCODING.extendedMouseButtons:
        return
      default:
        throw new MalformedGraphics(`expected an encoding of VNC that is drawn, got ${encoding}`)
    }
  }

  /**
   * Reads `U8 count` and three bytes, then that many screens; x is the reason for the change, and y its
   * result.
   */
  *#extendedDesktopSize(rectangle: Rectangle): Decoding {
    const source = this.#pump.source
    while (!source.has(4)) yield MORE
    const count = source.u8()
    source.take(3)
    while (!source.has(count * SCREEN_LENGTH)) yield MORE
    source.take(count * SCREEN_LENGTH)
    const isRefused = rectangle.x === 1 && rectangle.y !== 0
    if (!isRefused) this.framebuffer.resize(rectangle)
  }

  *#name(): Decoding {
    const source = this.#pump.source
    while (!source.has(4)) yield MORE
    const length = source.u32()
    if (length > MAX_NAME) {
      throw new MalformedGraphics(`expected a desktop's name of at most ${MAX_NAME} bytes, got ${length}`)
    }
    while (!source.has(length)) yield MORE
    source.take(length)
  }
}
