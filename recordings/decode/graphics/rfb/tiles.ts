/** The tiles of a rectangle, row by row; those at its right and lower edges may be smaller. */
import type { Rectangle } from '../rectangle.ts'

export function* tilesOf({ x, y, width, height }: Rectangle, side: number): Generator<Rectangle> {
  for (let top = y; top < y + height; top += side) {
    for (let left = x; left < x + width; left += side) {
      yield {
        x: left,
        y: top,
        width: Math.min(side, x + width - left),
        height: Math.min(side, y + height - top),
      }
    }
  }
}
