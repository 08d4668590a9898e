/** Which parts of a picture have changed: some rectangles, joined where that costs few pixels. */
import type { Rectangle, Size } from './rectangle.ts'

/** Past this they are joined whatever it costs. */
export const MAX_DIRTY = 16
/** Two rectangles are joined where the one around them has at most so many pixels more than both. */
const WASTE = 4096

export class DirtyRectangles {
  #rectangles: Rectangle[] = []

  add(rectangle: Rectangle): void {
    if (rectangle.width === 0 || rectangle.height === 0) return
    let joined = rectangle
    // What has grown may now be near to another.
    for (let at = this.#near(joined); at >= 0; at = this.#near(joined)) {
      joined = around(joined, this.#rectangles[at]!)
      this.#rectangles.splice(at, 1)
    }
    this.#rectangles.push(joined)
    if (this.#rectangles.length > MAX_DIRTY) this.#joinCheapest()
  }

  /** All of them, cut to what lies inside a picture of this size; then there are none. */
  take(size: Size): Rectangle[] {
    const taken = this.#rectangles
    this.#rectangles = []
    return taken.map((one) => cut(one, size)).filter(({ width, height }) => width > 0 && height > 0)
  }

  #near(rectangle: Rectangle): number {
    return this.#rectangles.findIndex((one) => waste(one, rectangle) <= WASTE)
  }

  #joinCheapest(): void {
    const last = this.#rectangles.pop()!
    let cheapest = 0
    for (let at = 1; at < this.#rectangles.length; at++) {
      if (waste(this.#rectangles[at]!, last) < waste(this.#rectangles[cheapest]!, last)) cheapest = at
    }
    this.#rectangles[cheapest] = around(this.#rectangles[cheapest]!, last)
  }
}

function around(a: Rectangle, b: Rectangle): Rectangle {
  const x = Math.min(a.x, b.x)
  const y = Math.min(a.y, b.y)
  return {
    x,
    y,
    width: Math.max(a.x + a.width, b.x + b.width) - x,
    height: Math.max(a.y + a.height, b.y + b.height) - y,
  }
}

function cut({ x, y, width, height }: Rectangle, size: Size): Rectangle {
  return { x, y, width: Math.min(width, size.width - x), height: Math.min(height, size.height - y) }
}

/** Pixels that joining two would add to theirs; below zero where they overlap. */
function waste(a: Rectangle, b: Rectangle): number {
  const { width, height } = around(a, b)
  return width * height - a.width * a.height - b.width * b.height
}
