/** Which pixels a viewer does not have yet: rectangles that do not overlap. */
import { intersection, joined, type Rectangle } from '../../desktop/scene.ts'

/** Above that they are joined, and some pixels are sent that the viewer has. */
const MAX_PARTS = 64

export class Damage {
  #parts: Rectangle[] = []

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
