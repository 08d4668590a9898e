/** A bitmap font for drawing without a display: 8 × 13 pixels, about 3700 characters. */
import { Buffer } from 'node:buffer'
import { brotliDecompressSync } from 'node:zlib'
import { FONT_DATA } from './font-data.ts'

export const GLYPH_WIDTH = 8
export const GLYPH_HEIGHT = 13

/** Rows from the top; the highest bit is the leftmost pixel. */
export type Glyph = Uint8Array

/** Replaces characters that the font does not have. */
const MISSING = 0xfffd
const RECORD = 2 + GLYPH_HEIGHT

let glyphs: Map<number, Glyph> | undefined

function load(): Map<number, Glyph> {
  const data = brotliDecompressSync(Buffer.from(FONT_DATA, 'base64'))
  const loaded = new Map<number, Glyph>()
  for (let at = 0; at < data.length; at += RECORD) {
    loaded.set(data.readUInt16BE(at), data.subarray(at + 2, at + RECORD))
  }
  return loaded
}

/** Returns the glyph of a code point, or that of U+FFFD if the font does not have it. */
export function glyphOf(codePoint: number): Glyph {
  glyphs ??= load()
  return glyphs.get(codePoint) ?? glyphs.get(MISSING)!
}
