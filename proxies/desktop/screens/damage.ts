/** Which pixels the other side does not have yet: rectangles that do not overlap. */
import { intersection, joined, type Rectangle } from './scene.ts'

/** Above that they are joined, and some pixels are sent that are there already. */
const MAX_PARTS = 64
/** Pixels that one band has at most, where a row has not more. */
const BAND_PIXELS = 128 * 1024

export class Damage {
  #parts: Rectangle[] = []

  /** How many there are. */
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

  /** What of it lies inside the area, which it has no more afterwards. */
  take(area: Rectangle): Rectangle[] {
    const taken = this.#parts.flatMap((part) => intersection(part, area) ?? [])
    this.#parts = this.#parts.flatMap((part) => without(part, area))
    return taken
  }
}

/** What of the box is not in the other one. */
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

/** The same area, in pieces of whole rows that are drawn and sent one at a time. */
export function bandsOf({ left, top, width, height }: Rectangle): Rectangle[] {
  const rows = Math.max(1, Math.floor(BAND_PIXELS / width))
  const bands: Rectangle[] = []
  for (let from = 0; from < height; from += rows) {
    bands.push({ left, top: top + from, width, height: Math.min(rows, height - from) })
  }
  return bands
}
