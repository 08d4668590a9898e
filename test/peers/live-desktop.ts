/** A watcher's view of a desktop: a canvas like a browser's. */
import { Buffer } from 'node:buffer'
import { inflateSync } from 'node:zlib'
import type { LiveMessage } from './live.ts'
import type { Picture } from './screen.ts'

/** Reads a PNG without a palette and without filters: independent of the broker's code. */
export function readPng(png: Uint8Array): Picture {
  const bytes = Buffer.from(png)
  const chunks = new Map<string, Buffer>()
  for (let at = 8; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at)
    chunks.set(bytes.toString('latin1', at + 4, at + 8), bytes.subarray(at + 8, at + 8 + length))
    at += length + 12
  }
  const header = chunks.get('IHDR')!
  const [width, height, row] = [header.readUInt32BE(0), header.readUInt32BE(4), 3 * header.readUInt32BE(0)]
  const rows = inflateSync(chunks.get('IDAT')!)
  const rgb = Buffer.alloc(row * height)
  for (let y = 0; y < height; y++) rows.copy(rgb, y * row, y * (row + 1) + 1, (y + 1) * (row + 1))
  return { width, height, rgb }
}

export class LiveCanvas {
  #picture: Picture = { width: 0, height: 0, rgb: Buffer.alloc(0) }
  #taken = 0

  /** Draws all messages of a watcher so far, and returns the canvas. */
  after(messages: readonly LiveMessage[]): Picture {
    for (; this.#taken < messages.length; this.#taken++) this.#take(messages[this.#taken]!)
    return this.#picture
  }

  put(left: number, top: number, part: Picture): void {
    const { width, rgb } = this.#picture
    for (let y = 0; y < part.height; y++) {
      part.rgb.copy(rgb, ((top + y) * width + left) * 3, y * part.width * 3, (y + 1) * part.width * 3)
    }
  }

  resize(width: number, height: number): void {
    const before = this.#picture
    if (before.width === width && before.height === height) return
    this.#picture = { width, height, rgb: Buffer.alloc(width * height * 3) }
  }

  #take({ type, channels = [], width = 0, height = 0, rectangles = [] }: LiveMessage): void {
    if (type === 'keyframe') {
      for (const { png } of channels)
        if (png !== undefined) this.#picture = readPng(Buffer.from(png, 'base64'))
    } else if (type === 'picture') {
      this.resize(width, height)
      for (const { x, y, png } of rectangles) this.put(x, y, readPng(Buffer.from(png, 'base64')))
    }
  }
}
