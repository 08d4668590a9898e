/**
 * Splits the bytes of a server after ServerInit (RFC 6143 section 7.6, and the community specification) into
 * messages and rectangles by the lengths in them: the exact bytes are forwarded as views.
 */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { uint16At } from '../../bytes/uint16.ts'
import { uint32At } from '../../bytes/uint32.ts'
import { cutTextLength, fenceLength } from './client-messages.ts'
import { ENCODING, encodingName, isPixelEncoding } from './encodings.ts'
import { checkFramebufferSize } from './limits.ts'
import { PendingBytes } from './pending-bytes.ts'
import type { PixelFormat } from './pixel-format.ts'
import { changesSize, pseudoBody, RECTANGLE_HEAD } from './pseudo-rectangle.ts'
import { checkInside, FixedBody, type RectangleBody, rectangleBody } from './rectangle-body.ts'
import { SERVER_MESSAGE } from './server-encoder.ts'

export interface Rectangle {
  kind: 'rectangle'
  /** For a cursor the hot spot, for an ExtendedDesktopSize the reason (`x`) and the status (`y`). */
  x: number
  y: number
  width: number
  height: number
  encoding: number
}

export type ServerUnit =
  /**
   * The 4 bytes of a FramebufferUpdate. With 65535 rectangles there may be fewer, and a LastRect after them.
   */
  | { kind: 'update'; rectangles: number }
  /** The 12 bytes and the data of a rectangle. */
  | Rectangle
  | { kind: 'colour-map'; first: number; count: number }
  | { kind: 'bell' }
  /** Latin-1 text, after 8 bytes. */
  | { kind: 'cut-text'; length: number }
  /** The data that the flags announce, after 12 bytes. */
  | { kind: 'extended-cut-text'; flags: number }
  | { kind: 'end-of-continuous-updates' }
  /** The payload, after 9 bytes. */
  | { kind: 'fence'; flags: number }

export interface ServerVisitor {
  /** Called at the beginning of a unit. */
  begin(unit: ServerUnit): void
  /**
   * Receives all bytes of a unit in order, from the first one on: views, valid during the call. Any unit but
   * a rectangle of pixels comes in one piece.
   */
  bytes(piece: Uint8Array, isEnd: boolean): void
  /** Called after the last rectangle of an update. */
  updateEnd(): void
}

export class ServerStream {
  readonly #visitor: ServerVisitor
  readonly #asked = new Set<number>([ENCODING.RAW])
  #width: number
  #height: number
  #format: PixelFormat
  #nextFormat: PixelFormat
  /** Rectangles left in the current update, with the one being read. */
  #rectangles = 0

  /** The beginning of a unit, or of bytes that its body needs, split by the end of a chunk. */
  readonly #head = Buffer.alloc(RECTANGLE_HEAD)
  #headLength = 0
  /** The unit being read. */
  #unit: ServerUnit = { kind: 'bell' }
  /** Undefined between two units. */
  #body: RectangleBody | undefined
  /** Set if the visitor gets the unit in one piece. */
  #isWhole = true
  /** Where in the chunk the unit's unreported bytes begin. */
  #untold = 0
  readonly #pending = new PendingBytes()

  constructor(init: { width: number; height: number; format: PixelFormat }, visitor: ServerVisitor) {
    checkFramebufferSize(init.width, init.height)
    this.#width = init.width
    this.#height = init.height
    this.#format = init.format
    this.#nextFormat = init.format
    this.#visitor = visitor
  }

  /** The framebuffer's width, as last changed by the server. */
  get width(): number {
    return this.#width
  }

  get height(): number {
    return this.#height
  }

  /** True from the beginning of an update to its end. */
  get isInUpdate(): boolean {
    return this.#rectangles > 0
  }

  /** Changes the format of pixels from the next update on. */
  setPixelFormat(format: PixelFormat): void {
    this.#nextFormat = format
  }

  /** Allows these encodings from now on, in addition: rectangles of earlier requests may still arrive. */
  ask(encodings: Iterable<number>): void {
    for (const encoding of encodings) this.#asked.add(encoding)
  }

  /** Throws MalformedError and errors of the visitor; the stream cannot be read after that. */
  feed(chunk: Uint8Array): void {
    let at = 0
    this.#untold = 0
    while (at < chunk.length)
      at = this.#body ? this.#readBody(chunk, at, this.#body) : this.#readHead(chunk, at)
  }

  /** Reads the beginning of a unit; returns where the bytes after it begin. */
  #readHead(chunk: Uint8Array, from: number): number {
    const held = this.#headLength
    const available = held + chunk.length - from
    if (held > 0) this.#head.set(chunk.subarray(from, from + RECTANGLE_HEAD - held), held)
    const bytes = held > 0 ? this.#head : chunk
    const offset = held > 0 ? 0 : from
    const length = this.#rectangles > 0 ? RECTANGLE_HEAD : this.#messageHead(bytes, offset, available)
    if (available < length) {
      if (held === 0) this.#head.set(chunk.subarray(from))
      this.#headLength = available
      return chunk.length
    }
    this.#headLength = 0
    const body =
      this.#rectangles > 0 ? this.#beginRectangle(bytes, offset) : this.#beginMessage(bytes, offset)
    this.#visitor.begin(this.#unit)
    if (held > 0) this.#tell(this.#head, 0, held, false)
    this.#untold = from
    const end = from + length - held
    if (body.skip > 0 || body.need > 0) this.#body = body
    else this.#end(chunk, end)
    // The chunk ends here, so the body does not report these bytes.
    if (this.#body && end === chunk.length) this.#tell(chunk, from, end, false)
    return end
  }

  /**
   * Returns the bytes of a message before the part that its length counts, or the number of bytes that
   * decides that, which is then more than `available`.
   */
  #messageHead(bytes: Uint8Array, at: number, available: number): number {
    switch (bytes[at]) {
      case SERVER_MESSAGE.UPDATE:
        return 4
      case SERVER_MESSAGE.COLOUR_MAP:
        return 6
      case SERVER_MESSAGE.CUT_TEXT:
        return available < 8 || !this.#cutTextLength(bytes, at).isExtended ? 8 : 12
      case SERVER_MESSAGE.FENCE:
        return 9
      case SERVER_MESSAGE.BELL:
      case SERVER_MESSAGE.END_OF_CONTINUOUS_UPDATES:
        return 1
      default:
        throw new MalformedError(`vnc: a message of a server was expected, found type ${bytes[at]}`)
    }
  }

  #beginMessage(bytes: Uint8Array, at: number): RectangleBody {
    this.#isWhole = true
    switch (bytes[at]) {
      case SERVER_MESSAGE.UPDATE:
        this.#unit = { kind: 'update', rectangles: uint16At(bytes, at + 2) }
        this.#format = this.#nextFormat
        return new FixedBody(0)
      case SERVER_MESSAGE.COLOUR_MAP: {
        const count = uint16At(bytes, at + 4)
        this.#unit = { kind: 'colour-map', first: uint16At(bytes, at + 2), count }
        return new FixedBody(6 * count)
      }
      case SERVER_MESSAGE.CUT_TEXT: {
        const { isExtended, body } = this.#cutTextLength(bytes, at)
        this.#unit = isExtended
          ? { kind: 'extended-cut-text', flags: uint32At(bytes, at + 8) }
          : { kind: 'cut-text', length: body }
        return new FixedBody(body)
      }
      case SERVER_MESSAGE.FENCE:
        this.#expectAsked(ENCODING.FENCE)
        this.#unit = { kind: 'fence', flags: uint32At(bytes, at + 4) }
        return new FixedBody(fenceLength(bytes, at))
      case SERVER_MESSAGE.BELL:
        this.#unit = { kind: 'bell' }
        return new FixedBody(0)
      default:
        this.#expectAsked(ENCODING.CONTINUOUS_UPDATES)
        this.#unit = { kind: 'end-of-continuous-updates' }
        return new FixedBody(0)
    }
  }

  #cutTextLength(bytes: Uint8Array, at: number): { isExtended: boolean; body: number } {
    return cutTextLength(bytes, at, this.#asked.has(ENCODING.EXTENDED_CLIPBOARD))
  }

  #beginRectangle(bytes: Uint8Array, at: number): RectangleBody {
    const rectangle: Rectangle = {
      kind: 'rectangle',
      x: uint16At(bytes, at),
      y: uint16At(bytes, at + 2),
      width: uint16At(bytes, at + 4),
      height: uint16At(bytes, at + 6),
      encoding: uint32At(bytes, at + 8) | 0,
    }
    const { encoding, width, height } = rectangle
    this.#unit = rectangle
    this.#expectAsked(encoding)
    if (isPixelEncoding(encoding)) {
      this.#isWhole = false
      checkInside(rectangle, this, 'a rectangle')
      return rectangleBody(encoding, rectangle, this.#format, { width: this.#width, height: this.#height })
    }
    this.#isWhole = true
    const isSize =
      encoding === ENCODING.DESKTOP_SIZE ||
      (encoding === ENCODING.EXTENDED_DESKTOP_SIZE && changesSize(rectangle))
    if (isSize) {
      checkFramebufferSize(width, height)
      this.#width = width
      this.#height = height
    }
    return pseudoBody(encoding, width, height, this.#format)
  }

  #expectAsked(encoding: number): void {
    if (this.#asked.has(encoding)) return
    throw new MalformedError(
      `vnc: an encoding that the viewer asked for was expected, found ${encodingName(encoding)}`,
    )
  }

  /** Continues a unit's body; returns where the bytes after it begin. */
  #readBody(chunk: Uint8Array, from: number, body: RectangleBody): number {
    let at = from
    while (true) {
      if (body.skip > 0) {
        const skipped = Math.min(body.skip, chunk.length - at)
        body.skip -= skipped
        at += skipped
        if (body.skip > 0) break
      }
      const { need } = body
      if (need === 0) {
        this.#body = undefined
        this.#end(chunk, at)
        return at
      }
      const held = this.#headLength
      if (held + chunk.length - at < need) {
        this.#head.set(chunk.subarray(at), held)
        this.#headLength += chunk.length - at
        break
      }
      if (held > 0) {
        this.#head.set(chunk.subarray(at, at + need - held), held)
        this.#headLength = 0
        body.step(this.#head, 0)
      } else body.step(chunk, at)
      at += need - held
    }
    this.#tell(chunk, this.#untold, chunk.length, false)
    return chunk.length
  }

  #end(chunk: Uint8Array, to: number): void {
    this.#tell(chunk, this.#untold, to, true)
    this.#untold = to
    const unit = this.#unit
    if (unit.kind === 'update') this.#rectangles = unit.rectangles
    else if (unit.kind !== 'rectangle') return
    else if (unit.encoding === ENCODING.LAST_RECT) this.#rectangles = 0
    else this.#rectangles -= 1
    if (this.#rectangles === 0) this.#visitor.updateEnd()
  }

  #tell(bytes: Uint8Array, from: number, to: number, isEnd: boolean): void {
    if (!this.#isWhole || (isEnd && this.#pending.length === 0)) {
      this.#visitor.bytes(bytes.subarray(from, to), isEnd)
      return
    }
    this.#pending.append(bytes, from, to)
    if (!isEnd) return
    this.#visitor.bytes(this.#pending.bytes, true)
    this.#pending.clear()
  }
}
