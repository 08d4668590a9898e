/**
 * The content of a screen, as boxes and lines of text from back to front. Two scenes can be compared, and any
 * part can be drawn alone, so that a screen of any size needs no memory for its pixels.
 */
import { Canvas } from '../../../src/drawing/canvas.ts'
import { GLYPH_HEIGHT, GLYPH_WIDTH } from '../../../src/drawing/font.ts'
import { COLOUR, type ColourName } from './palette.ts'

export interface Rectangle {
  left: number
  top: number
  width: number
  height: number
}

interface Item extends Rectangle {
  colour: number
  /** Absent if the item is a filled box. */
  text?: string
  isBold?: boolean
}

/** Rectangles that `changes` returns at most: more are joined. */
export const MAX_CHANGES = 16

/** All positions are in units: squares of `scale` pixels. */
export class Scene {
  readonly scale: number
  /** In pixels. */
  readonly area: Rectangle
  /** In units. */
  readonly width: number
  readonly height: number
  readonly #items = new Map<string, Item>()

  /** In pixels. */
  constructor(width: number, height: number) {
    this.scale = scaleOf(width, height)
    this.area = { left: 0, top: 0, width, height }
    this.width = Math.floor(width / this.scale)
    this.height = Math.floor(height / this.scale)
    // One unit more in each direction, for the rest at the edges.
    this.fill({ left: 0, top: 0, width: this.width + 1, height: this.height + 1 }, 'backdrop')
  }

  fill({ left, top, width, height }: Rectangle, colour: ColourName): void {
    if (width > 0 && height > 0) this.#add({ left, top, width, height, colour: COLOUR[colour] })
  }

  /** Draws the edge of a box, `thickness` units wide, inside it. */
  outline({ left, top, width, height }: Rectangle, colour: ColourName, thickness = 1): void {
    this.fill({ left, top, width, height: thickness }, colour)
    this.fill({ left, top: top + height - thickness, width, height: thickness }, colour)
    this.fill({ left, top, width: thickness, height }, colour)
    this.fill({ left: left + width - thickness, top, width: thickness, height }, colour)
  }

  /** Draws a line of text in characters of equal width, without a background. */
  text(left: number, top: number, text: string, colour: ColourName, isBold = false): void {
    const width = GLYPH_WIDTH * [...text].length
    if (width > 0) this.#add({ left, top, width, height: GLYPH_HEIGHT, colour: COLOUR[colour], text, isBold })
  }

  #add(item: Item): void {
    const key = `${item.left} ${item.top} ${item.width} ${item.height} ${item.colour} ${item.isBold} ${item.text}`
    // An item drawn again moves to the front.
    this.#items.delete(key)
    this.#items.set(key, item)
  }

  /** Returns rectangles, in pixels, that contain all differences and lie inside the scene. */
  changes(before: Scene): Rectangle[] {
    if (before.area.width !== this.area.width || before.area.height !== this.area.height) return [this.area]
    const changed = [
      ...[...this.#items].filter(([key]) => !before.#items.has(key)),
      ...[...before.#items].filter(([key]) => !this.#items.has(key)),
    ]
    return joined(changed.map(([, item]) => this.#pixels(item)).filter((box) => box !== undefined))
  }

  /** Draws this part, given in pixels: its upper left corner is at 0, 0 of the canvas. */
  paint(part: Rectangle): Canvas {
    const canvas = new Canvas(part.width, part.height)
    for (const item of this.#items.values()) {
      if (!intersection(this.#boxOf(item), part)) continue
      const { scale } = this
      const left = item.left * scale - part.left
      const top = item.top * scale - part.top
      if (item.text === undefined) {
        canvas.fill(left, top, item.width * scale, item.height * scale, item.colour)
        continue
      }
      let x = left
      for (const character of item.text) {
        if (x > -GLYPH_WIDTH * scale && x < part.width && character !== ' ') {
          canvas.scaledGlyph(x, top, character.codePointAt(0)!, item.colour, scale, item.isBold)
        }
        x += GLYPH_WIDTH * scale
      }
    }
    return canvas
  }

  #boxOf({ left, top, width, height }: Rectangle): Rectangle {
    const { scale } = this
    return { left: left * scale, top: top * scale, width: width * scale, height: height * scale }
  }

  /** Returns the item's pixels, or undefined if they are outside of the scene. */
  #pixels(item: Item): Rectangle | undefined {
    return intersection(this.#boxOf(item), this.area)
  }
}

/** Returns 1 for small screens, 2 for ordinary desktops, 4 for 3840 × 2160. */
function scaleOf(width: number, height: number): number {
  return 1 + Math.floor(Math.min(width / 1024, height / 720))
}

export function intersection(one: Rectangle, other: Rectangle): Rectangle | undefined {
  const left = Math.max(one.left, other.left)
  const top = Math.max(one.top, other.top)
  const width = Math.min(one.left + one.width, other.left + other.width) - left
  const height = Math.min(one.top + one.height, other.top + other.height) - top
  return width > 0 && height > 0 ? { left, top, width, height } : undefined
}

function union(one: Rectangle, other: Rectangle): Rectangle {
  const left = Math.min(one.left, other.left)
  const top = Math.min(one.top, other.top)
  return {
    left,
    top,
    width: Math.max(one.left + one.width, other.left + other.width) - left,
    height: Math.max(one.top + one.height, other.top + other.height) - top,
  }
}

/** Joins the rectangles that share rows, and the last ones too if there are too many. */
export function joined(boxes: readonly Rectangle[]): Rectangle[] {
  const bands: Rectangle[] = []
  for (const box of [...boxes].sort((a, b) => a.top - b.top)) {
    const last = bands.at(-1)
    if (last && (box.top < last.top + last.height || bands.length === MAX_CHANGES)) {
      bands[bands.length - 1] = union(last, box)
    } else bands.push(box)
  }
  return bands
}
