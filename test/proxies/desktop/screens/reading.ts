/** Reads pixels back to characters, by the font that drew them. */
import type { Screen } from '../../../../proxies/desktop/screens/screen.ts'
import type { Canvas } from '../../../../src/drawing/canvas.ts'
import { GLYPH_HEIGHT, GLYPH_WIDTH, glyphOf } from '../../../../src/drawing/font.ts'

const FACTOR = 0x01000193
/** FACTOR to the power of the rows. */
let oldest = 1
for (let y = 0; y < GLYPH_HEIGHT; y++) oldest = Math.imul(oldest, FACTOR)

/**
 * Returns the hash of a cell one row further down: adds a row at the bottom, removes one at the top. 0:
 * blank.
 */
const rolled = (hash: number, row: number, gone: number): number =>
  (Math.imul(hash, FACTOR) + row - Math.imul(gone, oldest)) | 0

const hashOf = (rows: Uint8Array): number => rows.reduce((hash, row) => rolled(hash, row, 0), 0)

/** The characters of the screens, plain and bold, without lines and blocks, which look like boxes. */
const READABLE = `${Array.from({ length: 0x17f }, (_, code) => String.fromCodePoint(code)).join('')}•…`
const characters = new Map<number, string>()
for (const character of READABLE) {
  const glyph = glyphOf(character.codePointAt(0)!)
  for (const hash of [hashOf(glyph), hashOf(glyph.map((row) => row | (row >> 1)))]) {
    if (hash !== 0 && !characters.has(hash)) characters.set(hash, character)
  }
}
// Characters that look like an edge in the middle of a panel.
for (const edge of '|¦-­¯_') {
  for (const [hash, character] of characters) if (character === edge && edge !== '-') characters.delete(hash)
}

/** Indexed by the lower bits of a hash: 0 if no character has them. */
const maybe = new Uint8Array(0x10000)
for (const hash of characters.keys()) maybe[hash & 0xffff] = 1

/** Returns for each place the hash of the cell that begins there, of the pixels of one colour. */
function hashesOf(pixels: Uint8Array, width: number, height: number, colour: number): Int32Array {
  // Eight pixels from each place on, as the bits of a glyph's row.
  const bits = new Uint8Array(pixels.length)
  for (let y = 0, at = 0; y < height; y++, at += width) {
    let row = 0
    for (let x = at + width - 1; x >= at; x--) {
      row = (row >> 1) | (pixels[x] === colour ? 0x80 : 0)
      bits[x] = row
    }
  }
  const hashes = new Int32Array(Math.max(0, height - GLYPH_HEIGHT + 1) * width)
  const above = GLYPH_HEIGHT * width
  for (let x = 0; x < width; x++) {
    let hash = 0
    for (let at = x; at < bits.length; at += width) {
      hash = rolled(hash, bits[at]!, at < above ? 0 : bits[at - above]!)
      if (at >= above - width) hashes[at - above + width] = hash
    }
  }
  return hashes
}

export interface Found {
  text: string
  /** The pixel of its first character. */
  left: number
  top: number
  /** An index into the palette. */
  colour: number
}

/**
 * Returns all lines of text, from the top, then from the left. `scale`: of the characters. Words of a line
 * are one space apart; a wider gap begins another line.
 */
export function readText(
  { width: pixelWidth, height: pixelHeight, pixels }: Pick<Canvas, 'width' | 'height' | 'pixels'>,
  scale: number,
): Found[] {
  const width = Math.floor(pixelWidth / scale)
  const height = Math.floor(pixelHeight / scale)
  const small = new Uint8Array(width * height)
  for (let y = 0, to = 0; y < height; y++) {
    for (let x = 0; x < width; x++) small[to++] = pixels[(y * pixelWidth + x) * scale]!
  }
  const runs: Found[] = []
  for (const colour of new Set(small)) {
    const hashes = hashesOf(small, width, height, colour)
    for (let at = 0; at < hashes.length; at++) {
      if (hashes[at] === 0 || maybe[hashes[at]! & 0xffff] === 0) continue
      const x = at % width
      let text = x + GLYPH_WIDTH > width ? undefined : characters.get(hashes[at]!)
      if (text === undefined) continue
      for (let end = GLYPH_WIDTH; x + end + GLYPH_WIDTH <= width; end += GLYPH_WIDTH) {
        const hash = hashes[at + end]!
        const next = hash === 0 ? ' ' : characters.get(hash)
        if (next === undefined || (next === ' ' && text.endsWith(' '))) break
        text += next
      }
      runs.push({ text: text.trimEnd(), left: x * scale, top: Math.floor(at / width) * scale, colour })
    }
  }
  // A cell that is read at a wrong place (half of a colon is a full stop) is shorter than the real text
  // there.
  const kept: Found[] = []
  for (const run of runs.sort((a, b) => b.text.length - a.text.length)) {
    const overlaps = kept.some(
      (other) =>
        Math.abs(run.top - other.top) < GLYPH_HEIGHT * scale &&
        run.left < other.left + other.text.length * GLYPH_WIDTH * scale &&
        other.left < run.left + run.text.length * GLYPH_WIDTH * scale,
    )
    if (!overlaps) kept.push(run)
  }
  return kept.sort((a, b) => a.top - b.top || a.left - b.left)
}

/** Returns the text of the screen, drawn at `scale`. */
export function shownText(screen: Screen, scale = 1): string[] {
  screen.takeDamage()
  const whole = { left: 0, top: 0, width: screen.width, height: screen.height }
  return readText(screen.paint(whole), scale).map(({ text }) => text)
}
