/** A viewer that reads updates in Raw and Hextile, and keeps the picture as 0xRRGGBB per pixel. */
import { ENCODING } from '../../../../proxies/vnc/codec/encodings.ts'
import { bytesPerPixel, type PixelFormat } from '../../../../proxies/vnc/codec/pixel-format.ts'

export class FakeViewer {
  format: PixelFormat
  width: number
  height: number
  pixels: Uint32Array
  name = ''
  /** Encodings of the rectangles so far. */
  readonly encodings: number[] = []
  /** Reason and status of each ExtendedDesktopSize. */
  readonly sizes: [number, number][] = []
  updates = 0
  #colours = new Uint32Array(256)
  #bytes: Buffer = Buffer.alloc(0)
  #at = 0
  #left = 0

  constructor(width: number, height: number, format: PixelFormat) {
    this.format = format
    this.width = width
    this.height = height
    this.pixels = new Uint32Array(width * height)
  }

  /** True between two messages. */
  get isWhole(): boolean {
    return this.#bytes.length === 0 && this.#left === 0
  }

  take(bytes: Uint8Array): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes])
    for (;;) {
      this.#at = 0
      try {
        this.#next()
      } catch (error) {
        if (error instanceof RangeError) return
        throw error
      }
      this.#bytes = this.#bytes.subarray(this.#at)
    }
  }

  #byte(): number {
    return this.#some(1)[0]!
  }

  #uint16(): number {
    return this.#some(2).readUInt16BE()
  }

  #some(count: number): Buffer {
    if (this.#bytes.length < this.#at + count) throw new RangeError('more is needed')
    this.#at += count
    return this.#bytes.subarray(this.#at - count, this.#at)
  }

  #next(): void {
    if (this.#left > 0) {
      this.#rectangle()
      this.#left--
      return
    }
    const type = this.#byte()
    this.#byte()
    if (type === 0) {
      this.#left = this.#uint16()
      this.updates++
    } else if (type === 1) {
      const first = this.#uint16()
      const count = this.#uint16()
      for (let index = 0; index < count; index++) {
        const [red, green, blue] = [this.#uint16(), this.#uint16(), this.#uint16()]
        this.#colours[first + index] = ((red >> 8) << 16) | ((green >> 8) << 8) | (blue >> 8)
      }
    } else throw new Error(`message ${type}`)
  }

  #rectangle(): void {
    const [x, y, width, height] = [this.#uint16(), this.#uint16(), this.#uint16(), this.#uint16()]
    const encoding = this.#some(4).readInt32BE()
    switch (encoding) {
      case ENCODING.RAW:
        this.#raw(x, y, width, height)
        break
      case ENCODING.HEXTILE:
        this.#hextile(x, y, width, height)
        break
      case ENCODING.EXTENDED_DESKTOP_SIZE: {
        const screens = this.#byte()
        this.#some(3 + 16 * screens)
        this.sizes.push([x, y])
        if (y === 0) this.#resize(width, height)
        break
      }
      case ENCODING.DESKTOP_SIZE:
        this.#resize(width, height)
        break
      case ENCODING.CURSOR:
        this.#some(width * height * bytesPerPixel(this.format) + Math.ceil(width / 8) * height)
        break
      case ENCODING.DESKTOP_NAME:
        this.name = this.#some(this.#some(4).readUInt32BE()).toString()
        break
      default:
        throw new Error(`encoding ${encoding}`)
    }
    this.encodings.push(encoding)
  }

  #resize(width: number, height: number): void {
    this.width = width
    this.height = height
    this.pixels = new Uint32Array(width * height)
  }

  #pixel(): number {
    const { format } = this
    const size = bytesPerPixel(format)
    const bytes = this.#some(size)
    const value = format.isBigEndian ? bytes.readUIntBE(0, size) : bytes.readUIntLE(0, size)
    if (!format.isTrueColour) return this.#colours[value]!
    const part = (max: number, shift: number) => Math.round((((value >>> shift) & max) * 255) / (max || 1))
    return (
      (part(format.redMax, format.redShift) << 16) |
      (part(format.greenMax, format.greenShift) << 8) |
      part(format.blueMax, format.blueShift)
    )
  }

  #fill(x: number, y: number, width: number, height: number, colour: number): void {
    if (x + width > this.width || y + height > this.height) throw new Error('outside of the screen')
    for (let row = y; row < y + height; row++) {
      this.pixels.fill(colour, row * this.width + x, row * this.width + x + width)
    }
  }

  #raw(x: number, y: number, width: number, height: number): void {
    if (this.#bytes.length < this.#at + width * height * bytesPerPixel(this.format)) throw new RangeError()
    for (let row = y; row < y + height; row++) {
      for (let column = x; column < x + width; column++) this.#fill(column, row, 1, 1, this.#pixel())
    }
  }

  #hextile(x: number, y: number, width: number, height: number): void {
    let background = 0
    let foreground = 0
    for (let top = y; top < y + height; top += 16) {
      for (let left = x; left < x + width; left += 16) {
        const right = Math.min(left + 16, x + width)
        const bottom = Math.min(top + 16, y + height)
        const flags = this.#byte()
        if (flags & 1) {
          this.#raw(left, top, right - left, bottom - top)
          continue
        }
        if (flags & 2) background = this.#pixel()
        this.#fill(left, top, right - left, bottom - top, background)
        if (flags & 4) foreground = this.#pixel()
        const boxes = flags & 8 ? this.#byte() : 0
        for (let box = 0; box < boxes; box++) {
          const colour = flags & 16 ? this.#pixel() : foreground
          const at = this.#byte()
          const size = this.#byte()
          this.#fill(left + (at >> 4), top + (at & 15), (size >> 4) + 1, (size & 15) + 1, colour)
        }
      }
    }
  }
}
