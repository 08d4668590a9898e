/** Encodes PNG (ISO/IEC 15948): a canvas, one byte a pixel with a palette, or any colours. */
import { Buffer } from 'node:buffer'
import { crc32, deflateSync } from 'node:zlib'
import type { Canvas } from './canvas.ts'

const SIGNATURE = Buffer.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)
const COLOURS = 2
const INDEXED = 3

/** Pixels of four bytes: red, green, blue, and one that is ignored. */
export interface ColourPicture {
  width: number
  height: number
  bytes: Uint8Array
}

/** `palette`: three bytes, red, green and blue, for each of at most 256 colours. */
export function encodePng(canvas: Canvas, palette: Uint8Array): Buffer {
  const { width, height, pixels } = canvas
  // Each row begins with its filter: none, which is best for few colours.
  const rows = Buffer.alloc((width + 1) * height)
  for (let y = 0; y < height; y++) rows.set(pixels.subarray(y * width, (y + 1) * width), y * (width + 1) + 1)
  return join(chunk('IHDR', headerOf(width, height, INDEXED)), chunk('PLTE', palette), dataOf(rows))
}

/** `level`: of zlib, 1 is the fastest. */
export function encodeColourPng({ width, height, bytes }: ColourPicture, level = 6): Buffer {
  const rows = Buffer.alloc((3 * width + 1) * height)
  for (let y = 0, from = 0, to = 0; y < height; y++) {
    // The filter: none.
    to++
    for (let x = 0; x < width; x++, from += 4) {
      rows[to++] = bytes[from]!
      rows[to++] = bytes[from + 1]!
      rows[to++] = bytes[from + 2]!
    }
  }
  return join(chunk('IHDR', headerOf(width, height, COLOURS)), dataOf(rows, level))
}

/** Adds a title to the picture (a chunk tEXt, ISO/IEC 15948 11.3.4.3): printable ASCII. */
export function titled(png: Buffer, title: string): Buffer {
  const text = chunk('tEXt', Buffer.from(`Title\0${title}`, 'latin1'))
  // After the header, which is the first chunk and has 25 bytes.
  const head = SIGNATURE.length + 25
  return Buffer.concat([png.subarray(0, head), text, png.subarray(head)])
}

function join(...chunks: Buffer[]): Buffer {
  return Buffer.concat([SIGNATURE, ...chunks, chunk('IEND', Buffer.alloc(0))])
}

/** Returns a header for eight bits in each sample. */
function headerOf(width: number, height: number, type: number): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, type, 0, 0, 0], 8)
  return header
}

function dataOf(rows: Buffer, level = 6): Buffer {
  return chunk('IDAT', deflateSync(rows, { level }))
}

function chunk(type: string, data: Uint8Array): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(data.length)
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const check = Buffer.alloc(4)
  check.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, check])
}
