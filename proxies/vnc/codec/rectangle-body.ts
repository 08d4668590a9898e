/**
 * Finds the end of a rectangle's data by the lengths in it. Nothing is inflated and no pixel is checked, so
 * compressed data may contain anything.
 */
import { MalformedError } from '../../bytes/malformed.ts'
import { uint16At } from '../../bytes/uint16.ts'
import { uint32At } from '../../bytes/uint32.ts'
import type { Area } from './client-messages.ts'
import { ENCODING, encodingName } from './encodings.ts'
import { bytesPerPixel, bytesPerTightPixel, type PixelFormat } from './pixel-format.ts'

/** A rectangle's compressed data may have up to `2 × pixels + ALLOWANCE` bytes. */
const COMPRESSED_ALLOWANCE = 1024

/** The rest of the data: `skip` bytes, then `need` bytes that decide what follows. Both 0 at the end. */
export interface RectangleBody {
  skip: number
  need: number
  /** Reads the `need` bytes at `at` and updates both numbers. Throws MalformedError. */
  step(bytes: Uint8Array, at: number): void
}

/** `framebuffer`: its size at this rectangle. */
export function rectangleBody(
  encoding: number,
  area: Area,
  format: PixelFormat,
  framebuffer: { width: number; height: number },
): RectangleBody {
  const pixels = area.width * area.height
  switch (encoding) {
    case ENCODING.RAW:
      return new FixedBody(pixels * bytesPerPixel(format))
    case ENCODING.COPY_RECT:
      return new CopyRectBody(area, framebuffer)
    case ENCODING.RRE:
      return new RreBody(pixels, bytesPerPixel(format))
    case ENCODING.HEXTILE:
      return new HextileBody(area, bytesPerPixel(format))
    case ENCODING.ZLIB:
    case ENCODING.ZRLE:
      return new CompressedBody(pixels * bytesPerPixel(format))
    case ENCODING.TIGHT:
      return new TightBody(area, format)
    default:
      throw new MalformedError(`vnc: an encoding of pixels was expected, found ${encodingName(encoding)}`)
  }
}

/** A fixed number of bytes. */
export class FixedBody implements RectangleBody {
  skip: number
  readonly need = 0

  constructor(length: number) {
    this.skip = length
  }

  step(): void {}
}

/** RFC 6143 section 7.7.2. */
class CopyRectBody implements RectangleBody {
  skip = 0
  need = 4
  readonly #area: Area
  readonly #framebuffer: { width: number; height: number }

  constructor(area: Area, framebuffer: { width: number; height: number }) {
    this.#area = area
    this.#framebuffer = framebuffer
  }

  step(bytes: Uint8Array, at: number): void {
    const x = uint16At(bytes, at)
    const y = uint16At(bytes, at + 2)
    checkInside({ ...this.#area, x, y }, this.#framebuffer, 'the source of a copied rectangle')
    this.need = 0
  }
}

/** Throws MalformedError unless the area lies in the framebuffer. */
export function checkInside(area: Area, framebuffer: { width: number; height: number }, what: string): void {
  if (framebuffer.width < area.x + area.width || framebuffer.height < area.y + area.height) {
    throw new MalformedError(
      `vnc: ${what} inside ${framebuffer.width} × ${framebuffer.height} was expected, found ${area.width} × ${area.height} at ${area.x}, ${area.y}`,
    )
  }
}

/** RFC 6143 section 7.7.3. */
class RreBody implements RectangleBody {
  skip = 0
  need = 4
  readonly #pixels: number
  readonly #pixelBytes: number

  constructor(pixels: number, pixelBytes: number) {
    this.#pixels = pixels
    this.#pixelBytes = pixelBytes
  }

  step(bytes: Uint8Array, at: number): void {
    const count = uint32At(bytes, at)
    if (this.#pixels < count) {
      throw new MalformedError(
        `vnc: at most one subrectangle for each of ${this.#pixels} pixels was expected, found ${count}`,
      )
    }
    this.skip = this.#pixelBytes + count * (this.#pixelBytes + 8)
    this.need = 0
  }
}

/**
 * A length of four bytes, and as many bytes: RFC 6143 section 7.7.6, and the community specification's zlib.
 */
class CompressedBody implements RectangleBody {
  skip = 0
  need = 4
  readonly #pixelBytes: number

  constructor(pixelBytes: number) {
    this.#pixelBytes = pixelBytes
  }

  step(bytes: Uint8Array, at: number): void {
    this.skip = checkedLength(uint32At(bytes, at), this.#pixelBytes)
    this.need = 0
  }
}

/** Checks the compressed length of `size` bytes of pixels. */
function checkedLength(length: number, size: number): number {
  const limit = 2 * size + COMPRESSED_ALLOWANCE
  if (limit < length) {
    throw new MalformedError(
      `vnc: at most ${limit} bytes were expected for ${size} bytes of pixels, found ${length}`,
    )
  }
  return length
}

const TILE = 16
/** The bits of a tile's mask (RFC 6143 section 7.7.4). */
const HEXTILE = { RAW: 1, BACKGROUND: 2, FOREGROUND: 4, SUBRECTANGLES: 8, COLOURED: 16 } as const
const HEXTILE_MASK = 0x1f

class HextileBody implements RectangleBody {
  skip = 0
  need: number
  readonly #width: number
  readonly #height: number
  readonly #pixelBytes: number
  #x = 0
  #y = 0
  /** Bytes of the tile whose number of subrectangles follows. */
  #countedBytes = 0

  constructor({ width, height }: Area, pixelBytes: number) {
    this.#width = width
    this.#height = height
    this.#pixelBytes = pixelBytes
    this.need = width > 0 && height > 0 ? 1 : 0
  }

  step(bytes: Uint8Array, at: number): void {
    if (this.#countedBytes > 0) {
      this.skip = bytes[at]! * this.#countedBytes
      this.#countedBytes = 0
      this.#nextTile()
    } else this.#tile(bytes[at]!)
  }

  #tile(mask: number): void {
    if (mask & ~HEXTILE_MASK) {
      throw new MalformedError(`vnc: a hextile mask of 5 bits was expected, found ${mask}`)
    }
    if (mask & HEXTILE.RAW) {
      const width = Math.min(TILE, this.#width - this.#x)
      const height = Math.min(TILE, this.#height - this.#y)
      this.skip = width * height * this.#pixelBytes
      this.#nextTile()
      return
    }
    this.skip =
      (mask & HEXTILE.BACKGROUND ? this.#pixelBytes : 0) + (mask & HEXTILE.FOREGROUND ? this.#pixelBytes : 0)
    if (mask & HEXTILE.SUBRECTANGLES)
      this.#countedBytes = (mask & HEXTILE.COLOURED ? this.#pixelBytes : 0) + 2
    else this.#nextTile()
  }

  #nextTile(): void {
    this.#x += TILE
    if (this.#x < this.#width) return
    this.#x = 0
    this.#y += TILE
    if (this.#height <= this.#y) this.need = 0
  }
}

/** Community specification, Tight Encoding: the upper half of the first byte. */
const TIGHT = { FILTER: 4, FILL: 8, JPEG: 9 } as const
const FILTER = { COPY: 0, PALETTE: 1, GRADIENT: 2 } as const
/** Pixels of fewer bytes are not compressed. */
const TIGHT_MIN_COMPRESSED = 12

type TightState = 'control' | 'filter' | 'palette' | 'length'

class TightBody implements RectangleBody {
  skip = 0
  need = 1
  readonly #area: Area
  readonly #format: PixelFormat
  #state: TightState = 'control'
  /** Bytes of the filtered pixels, before their compression. */
  #size = 0
  #length = 0
  #lengthBytes = 0

  constructor(area: Area, format: PixelFormat) {
    this.#area = area
    this.#format = format
  }

  step(bytes: Uint8Array, at: number): void {
    this.skip = 0
    const byte = bytes[at]!
    switch (this.#state) {
      case 'control':
        this.#control(byte >> 4)
        return
      case 'filter':
        this.#filter(byte)
        return
      case 'palette':
        this.#palette(byte + 1)
        return
      case 'length':
        this.#lengthByte(byte)
    }
  }

  #control(method: number): void {
    if (method === TIGHT.FILL) this.#end(bytesPerTightPixel(this.#format))
    else if (method === TIGHT.JPEG) {
      this.#mayNotHave8Bits('JPEG')
      this.#size = this.#area.width * this.#area.height * bytesPerPixel(this.#format)
      this.#state = 'length'
    } else if (method > TIGHT.JPEG) {
      throw new MalformedError(`vnc: a compression method of tight was expected, found ${method}`)
    } else if (method & TIGHT.FILTER) this.#state = 'filter'
    else this.#pixels(bytesPerTightPixel(this.#format))
  }

  #filter(filter: number): void {
    if (filter === FILTER.PALETTE) {
      this.#state = 'palette'
      return
    }
    if (filter === FILTER.GRADIENT) this.#mayNotHave8Bits('a gradient')
    else if (filter !== FILTER.COPY) {
      throw new MalformedError(`vnc: a filter of tight was expected, found ${filter}`)
    }
    this.#pixels(bytesPerTightPixel(this.#format))
  }

  #palette(colours: number): void {
    const { width, height } = this.#area
    this.#pixels(0, height * (colours <= 2 ? Math.ceil(width / 8) : width))
    this.skip += colours * bytesPerTightPixel(this.#format)
  }

  /** Expects filtered pixels of `each` bytes, or of `size` bytes in all. */
  #pixels(each: number, size = this.#area.width * this.#area.height * each): void {
    this.#size = size
    if (size < TIGHT_MIN_COMPRESSED) this.#end(size)
    else this.#state = 'length'
  }

  /** Reads a length of 7 bits, 7 bits, and 8, the lowest first. */
  #lengthByte(byte: number): void {
    const isLast = this.#lengthBytes === 2
    this.#length |= (isLast ? byte : byte & 0x7f) << (7 * this.#lengthBytes)
    this.#lengthBytes += 1
    if (isLast || byte < 0x80) this.#end(checkedLength(this.#length, this.#size))
  }

  #end(skip: number): void {
    this.skip = skip
    this.need = 0
  }

  #mayNotHave8Bits(what: string): void {
    if (this.#format.bitsPerPixel !== 8) return
    throw new MalformedError(`vnc: ${what} was expected with 16 or 32 bits a pixel only, found 8`)
  }
}
