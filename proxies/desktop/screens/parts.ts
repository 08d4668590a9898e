/** The parts of a screen: panels, buttons, and input lines. */
import { GLYPH_HEIGHT, GLYPH_WIDTH } from '../../../src/drawing/font.ts'
import { printable } from '../../wording/line-input.ts'
import type { Rectangle, Scene } from './scene.ts'
import { GAP, type KeyPress } from './screen.ts'
import { cut } from './words.ts'

export const BUTTON_HEIGHT = GLYPH_HEIGHT + 10
export const FIELD_HEIGHT = GLYPH_HEIGHT + 8

/**
 * Returns a box in the middle of the body, of so many characters in width and of this height if there is
 * room.
 */
export function panel(scene: Scene, body: Rectangle, columns: number, height: number): Rectangle {
  const width = Math.max(0, Math.min(body.width - 2 * GAP, columns * GLYPH_WIDTH + 4 * GAP))
  const fits = Math.max(0, Math.min(body.height - 2 * GAP, height))
  const box = {
    left: body.left + Math.floor((body.width - width) / 2),
    // A little above the middle, where the eye expects it.
    top: body.top + Math.max(GAP, Math.floor(((body.height - fits) * 2) / 5)),
    width,
    height: fits,
  }
  scene.fill(box, 'panel')
  return box
}

export function button(scene: Scene, box: Rectangle, label: string, hasFocus: boolean): void {
  scene.fill(box, hasFocus ? 'focus' : 'button')
  scene.outline(box, hasFocus ? 'focus' : 'line')
  const text = cut(label, Math.floor(box.width / GLYPH_WIDTH))
  const left = box.left + Math.floor((box.width - GLYPH_WIDTH * [...text].length) / 2)
  scene.text(left, box.top + 5, text, hasFocus ? 'focusText' : 'text')
}

/** Returns boxes for a row of buttons, the last one at the right edge. */
export function buttonRow(labels: readonly string[], right: number, top: number): Rectangle[] {
  const boxes: Rectangle[] = []
  let end = right
  for (const label of [...labels].reverse()) {
    const width = GLYPH_WIDTH * Math.max(8, label.length + 2)
    boxes.unshift({ left: end - width, top, width, height: BUTTON_HEIGHT })
    end -= width + GAP
  }
  return boxes
}

/** An input line with a caret. */
export class TextField {
  readonly #isSecret: boolean
  readonly #maximum: number
  #characters: string[]
  #caret: number

  /** `maximum`: characters; input beyond it is dropped. */
  constructor(maximum: number, isSecret = false, value = '') {
    this.#maximum = maximum
    this.#isSecret = isSecret
    this.#characters = [...value].slice(0, maximum)
    this.#caret = this.#characters.length
  }

  get value(): string {
    return this.#characters.join('')
  }

  /** Handles a key, and returns true if the line uses it, such as Home and End. */
  press(press: KeyPress): boolean {
    if ('text' in press) {
      const room = this.#maximum - this.#characters.length
      const typed = [...press.text.slice(0, 2 * room)].filter((one) => printable(one) === one).slice(0, room)
      this.#characters.splice(this.#caret, 0, ...typed)
      this.#caret += typed.length
      return true
    }
    switch (press.key) {
      case 'Backspace':
        if (this.#caret > 0) this.#characters.splice(--this.#caret, 1)
        return true
      case 'Delete':
        this.#characters.splice(this.#caret, 1)
        return true
      case 'Left':
        this.#caret = Math.max(0, this.#caret - 1)
        return true
      case 'Right':
        this.#caret = Math.min(this.#characters.length, this.#caret + 1)
        return true
      case 'Home':
        this.#caret = 0
        return true
      case 'End':
        this.#caret = this.#characters.length
        return true
      default:
        return false
    }
  }

  clear(): void {
    this.#characters = []
    this.#caret = 0
  }

  /** Draws the part around the caret, `FIELD_HEIGHT` high. */
  draw(scene: Scene, box: Rectangle, hasFocus: boolean): void {
    scene.fill(box, 'field')
    scene.outline(box, hasFocus ? 'focus' : 'line', hasFocus ? 2 : 1)
    const columns = Math.max(1, Math.floor((box.width - GAP) / GLYPH_WIDTH))
    const from = Math.max(0, this.#caret - columns + 1)
    const shown = this.#characters.slice(from, from + columns)
    scene.text(box.left + 4, box.top + 4, this.#isSecret ? '•'.repeat(shown.length) : shown.join(''), 'text')
    if (!hasFocus) return
    const caret = box.left + 4 + GLYPH_WIDTH * (this.#caret - from)
    scene.fill({ left: caret, top: box.top + 4, width: 1, height: GLYPH_HEIGHT }, 'focus')
  }
}
