/** QR codes (ISO/IEC 18004) of short texts: as squares to draw, and as lines of text for terminals. */
import { encode } from 'uqr'

/** The largest version: with its border it has 23 lines, which leaves a terminal one for the prompt. */
const MAX_VERSION = 6
/** Light squares around the code. ISO/IEC 18004 asks for four, readers for less. */
const BORDER = 2

/** Returns rows of squares, true where one is dark, or undefined for a text that is too long (134 bytes of UTF-8). */
export function qrSquares(text: string): boolean[][] | undefined {
  try {
    return encode(text, { ecc: 'L', maxVersion: MAX_VERSION, border: BORDER }).data
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/**
 * Returns lines of half blocks, which draw the light squares: for terminals with light text on a dark ground. Empty
 * for a text that is too long.
 */
export function qrLines(text: string): string[] {
  const squares = qrSquares(text) ?? []
  const lines: string[] = []
  for (let y = 0; y < squares.length; y += 2) {
    const [upper, lower] = [squares[y]!, squares[y + 1]]
    lines.push(upper.map((isDark, x) => blockOf(isDark, lower?.[x] ?? true)).join(''))
  }
  return lines
}

function blockOf(isUpperDark: boolean, isLowerDark: boolean): string {
  if (isUpperDark) return isLowerDark ? ' ' : '▄'
  return isLowerDark ? '▀' : '█'
}
