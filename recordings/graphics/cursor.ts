/** The pointer's picture, which targets send apart from the desktop. */
import type { Framebuffer } from './framebuffer.ts'

export interface Cursor {
  width: number
  height: number
  /** The pixel that points. */
  hotX: number
  hotY: number
  /** 0xAABBGGRR, the colours multiplied by alpha. */
  pixels: Uint32Array
}

const ALPHA = 24
const BYTE = 0xff

/** Draws it so that it points at `x`, `y`; what lies outside is left out. */
export function drawCursor(framebuffer: Framebuffer, cursor: Cursor, x: number, y: number): void {
  const left = x - cursor.hotX
  const top = y - cursor.hotY
  const firstRow = Math.max(0, -top)
  const lastRow = Math.min(cursor.height, framebuffer.height - top)
  const firstColumn = Math.max(0, -left)
  const lastColumn = Math.min(cursor.width, framebuffer.width - left)
  const { pixels } = framebuffer
  for (let row = firstRow; row < lastRow; row++) {
    for (let column = firstColumn; column < lastColumn; column++) {
      const at = (top + row) * framebuffer.width + left + column
      pixels[at] = over(cursor.pixels[row * cursor.width + column]!, pixels[at]!)
    }
  }
}

function over(front: number, behind: number): number {
  const alpha = front >>> ALPHA
  if (alpha === BYTE) return front
  let colour = BYTE << ALPHA
  for (let shift = 0; shift < ALPHA; shift += 8) {
    const rest = Math.round((((behind >>> shift) & BYTE) * (BYTE - alpha)) / BYTE)
    colour |= Math.min(BYTE, ((front >>> shift) & BYTE) + rest) << shift
  }
  return colour >>> 0
}
