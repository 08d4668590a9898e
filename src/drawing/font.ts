/** A bitmap font for what is drawn without a display: 8 × 13 pixels, some 3700 characters. */
import { Buffer } from 'node:buffer'
import { brotliDecompressSync } from 'node:zlib'
import { FONT_DATA } from './font-data.ts'

export const GLYPH_WIDTH = 8
export const GLYPH_HEIGHT = 13

/** Rows from the top; the highest bit is the leftmost pixel. */
export type Glyph = Uint8Array

/** What stands for a character that the font does not have. */
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

/** The glyph of a code point; a character that is not in the font gets that of U+FFFD. */
export function glyphOf(codePoint: number): Glyph {
  glyphs ??= load()
  return glyphs.get(codePoint) ?? glyphs.get(MISSING)!
}
