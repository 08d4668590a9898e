/** The changed parts of a picture: a few rectangles, joined where that costs few pixels. */
import type { Rectangle, Size } from './rectangle.ts'

/** Above this number, rectangles are joined at any cost. */
export const MAX_DIRTY = 16
/** Extra pixels up to which two rectangles are joined into the one around them. */
const WASTE = 4096

export class DirtyRectangles {
  #rectangles: Rectangle[] = []

  add(rectangle: Rectangle): void {
    if (rectangle.width === 0 || rectangle.height === 0) return
    let joined = rectangle
    // The grown rectangle may now be near to another.
    for (let at = this.#near(joined); at >= 0; at = this.#near(joined)) {
      joined = around(joined, this.#rectangles[at]!)
      this.#rectangles.splice(at, 1)
    }
    this.#rectangles.push(joined)
    if (this.#rectangles.length > MAX_DIRTY) this.#joinCheapest()
  }

  /** Returns all rectangles, cut to a picture of this size, and clears them. */
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

/** Returns the pixels that joining two rectangles would add; below zero if they overlap. */
function waste(a: Rectangle, b: Rectangle): number {
  const { width, height } = around(a, b)
  return width * height - a.width * a.height - b.width * b.height
}
