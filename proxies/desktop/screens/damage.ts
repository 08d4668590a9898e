/** The pixels that the viewer does not have yet, as rectangles that do not overlap. */
import { intersection, joined, type Rectangle } from './scene.ts'

/** More rectangles than this are joined, at the price of sending some pixels again. */
const MAX_PARTS = 64
/** Pixels of a band, at most, unless a single row has more. */
const BAND_PIXELS = 128 * 1024

export class Damage {
  #parts: Rectangle[] = []

  /** The number of rectangles. */
  get parts(): number {
    return this.#parts.length
  }

  add(box: Rectangle): void {
    this.#parts = [...this.#parts.flatMap((part) => without(part, box)), box]
    if (this.#parts.length > MAX_PARTS) this.#parts = joined(this.#parts)
  }

  clear(): void {
    this.#parts = []
  }

  /** Removes the damage inside the area, and returns it. */
  take(area: Rectangle): Rectangle[] {
    const taken = this.#parts.flatMap((part) => intersection(part, area) ?? [])
    this.#parts = this.#parts.flatMap((part) => without(part, area))
    return taken
  }
}

/** Returns the parts of the box outside of the other one. */
function without(box: Rectangle, other: Rectangle): Rectangle[] {
  const common = intersection(box, other)
  if (!common) return [box]
  const bottom = common.top + common.height
  const right = common.left + common.width
  const beside = { top: common.top, height: common.height }
  return [
    { ...box, height: common.top - box.top },
    { ...box, top: bottom, height: box.top + box.height - bottom },
    { ...beside, left: box.left, width: common.left - box.left },
    { ...beside, left: right, width: box.left + box.width - right },
  ].filter(({ width, height }) => width > 0 && height > 0)
}

/** Splits an area into bands of whole rows, which are drawn and sent one at a time. */
export function bandsOf({ left, top, width, height }: Rectangle): Rectangle[] {
  const rows = Math.max(1, Math.floor(BAND_PIXELS / width))
  const bands: Rectangle[] = []
  for (let from = 0; from < height; from += rows) {
    bands.push({ left, top: top + from, width, height: Math.min(rows, height - from) })
  }
  return bands
}
