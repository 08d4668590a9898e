/** Builds updates of RDP for tests. */
import { Buffer } from 'node:buffer'
import { greyPalette } from '../../../../../recordings/decode/graphics/rdp/colours.ts'
import { MESSAGE_HEAD, writeUpdateHead } from '../../../../../recordings/decode/graphics/rdp/message.ts'

export const grey = greyPalette()

export const words = (...numbers: number[]): Buffer => Buffer.from(Uint16Array.from(numbers).buffer)

export function encodeUpdateHead(code: number, length: number): Buffer {
  const head = Buffer.alloc(MESSAGE_HEAD)
  writeUpdateHead(head, 0, code, length)
  return head
}

/** Builds an update as in `graphics` frames. */
export const message = (code: number, data: Uint8Array): Buffer =>
  Buffer.concat([encodeUpdateHead(code, data.length), data])

export interface BitmapOptions {
  left?: number
  top?: number
  right?: number
  bottom?: number
  width: number
  height: number
  depth: number
  flags?: number
  data: Uint8Array
}

/** Builds a bitmap of an update, by default at the upper left corner. */
export function bitmap({ left = 0, top = 0, width, height, ...more }: BitmapOptions): Buffer {
  const { right = left + width - 1, bottom = top + height - 1, depth, flags = 0, data } = more
  return Buffer.concat([words(left, top, right, bottom, width, height, depth, flags, data.length), data])
}

export const bitmapUpdate = (...bitmaps: Buffer[]): Buffer =>
  Buffer.concat([words(1, bitmaps.length), ...bitmaps])

/** Builds the data of a bitmap of one colour, 0xRRGGBB, run-length encoded. */
export function run(width: number, height: number, colour: number): Omit<BitmapOptions, 'left' | 'top'> {
  const orders: Buffer[] = []
  for (let left = width * height; left > 0; left -= 0xffff) {
    const order = Buffer.of(0xf3, 0, 0, colour & 0xff, (colour >> 8) & 0xff, colour >> 16)
    order.writeUInt16LE(Math.min(0xffff, left), 1)
    orders.push(order)
  }
  return { width, height, depth: 24, flags: 0x401, data: Buffer.concat(orders) }
}

/** Builds an update that fills an area with a colour of 0xRRGGBB. */
export const filled = (
  { x, y, width, height }: { x: number; y: number; width: number; height: number },
  colour: number,
): Buffer => message(1, bitmapUpdate(bitmap({ left: x, top: y, ...run(width, height, colour) })))

/** `colours`: three bytes each. */
export const paletteUpdate = (colours: Uint8Array): Buffer =>
  Buffer.concat([words(2, 0, colours.length / 3, 0), colours])

export interface PointerOptions {
  cacheIndex?: number
  hotX?: number
  hotY?: number
  width: number
  height: number
  colours: Uint8Array
  transparency?: Uint8Array
}

/** Builds a pointer update without the depth: a colour pointer. */
export function pointer(options: PointerOptions): Buffer {
  const { cacheIndex = 0, hotX = 0, hotY = 0, width, height, colours } = options
  const { transparency = new Uint8Array(0) } = options
  const head = words(cacheIndex, hotX, hotY, width, height, transparency.length, colours.length)
  return Buffer.concat([head, colours, transparency])
}
