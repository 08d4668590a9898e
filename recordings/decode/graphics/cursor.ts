/** The pointer's picture, which targets send apart from the desktop. */
import type { Framebuffer } from './framebuffer.ts'
import type { Rectangle, Size } from './rectangle.ts'

export interface Cursor {
  width: number
  height: number
  /** Column of the pixel that points. */
  hotX: number
  hotY: number
  /** 0xAABBGGRR, premultiplied by alpha. */
  pixels: Uint32Array
}

const ALPHA = 24
const BYTE = 0xff

export interface Point {
  x: number
  y: number
}

/**
 * Returns the area of the picture that the cursor covers when it points there. Its width or height is 0 if it
 * lies outside.
 */
export function cursorArea(framebuffer: Size, cursor: Cursor, at: Point): Rectangle {
  const left = at.x - cursor.hotX
  const top = at.y - cursor.hotY
  const x = Math.min(framebuffer.width, Math.max(0, left))
  const y = Math.min(framebuffer.height, Math.max(0, top))
  return {
    x,
    y,
    width: Math.max(0, Math.min(framebuffer.width, left + cursor.width) - x),
    height: Math.max(0, Math.min(framebuffer.height, top + cursor.height) - y),
  }
}

/** Draws the cursor so that it points there; the part outside of the picture is left out. */
export function drawCursor(framebuffer: Framebuffer, cursor: Cursor, at: Point): void {
  const { x, y, width, height } = cursorArea(framebuffer, cursor, at)
  const { pixels } = framebuffer
  for (let row = y; row < y + height; row++) {
    const from = (row - at.y + cursor.hotY) * cursor.width - at.x + cursor.hotX
    for (let column = x; column < x + width; column++) {
      const to = row * framebuffer.width + column
      pixels[to] = over(cursor.pixels[from + column]!, pixels[to]!)
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
