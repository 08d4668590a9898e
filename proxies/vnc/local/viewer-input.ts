/** Converts a viewer's key and pointer events (RFB) for the bastion's own screens. */
import { marked } from '../../desktop/screens/accents.ts'
import type { KeyPress, PointerState } from '../../desktop/screens/screen.ts'
import { markOf, pressOf } from './keysyms.ts'

const MODIFIERS: Readonly<Record<number, 'shift' | 'control' | 'alt'>> = {
  65505: 'shift',
  65506: 'shift',
  65507: 'control',
  65508: 'control',
  65511: 'alt',
  65512: 'alt',
  65513: 'alt',
  65514: 'alt',
  65515: 'alt',
  65516: 'alt',
}

const LEFT = 1
const WHEEL_UP = 8
const WHEEL_DOWN = 16

export class ViewerInput {
  /** Keysyms of the modifiers that are held. */
  readonly #held = new Set<number>()
  /** The mark of a dead key that was pressed. */
  #mark: string | undefined
  #buttons = 0

  /** Called when another screen is shown. */
  begin(): void {
    this.#mark = undefined
  }

  /** Returns the key press, or undefined if a screen does not use it. */
  key(isDown: boolean, keysym: number): KeyPress | undefined {
    if (keysym in MODIFIERS) {
      if (isDown) this.#held.add(keysym)
      else this.#held.delete(keysym)
      return undefined
    }
    if (!isDown) return undefined
    const mark = markOf(keysym)
    if (mark !== undefined) {
      this.#mark = mark
      return undefined
    }
    const press = pressOf(keysym, this.#holds('shift'))
    if (!press || 'key' in press) return press
    // Both together are AltGr on Windows.
    if (this.#holds('control') !== this.#holds('alt')) return undefined
    const text = this.#mark === undefined ? press.text : marked(this.#mark, press.text)
    this.#mark = undefined
    return { text }
  }

  pointer(x: number, y: number, buttons: number): PointerState {
    const pressed = buttons & ~this.#buttons
    this.#buttons = buttons
    const wheel = (pressed & WHEEL_DOWN ? 1 : 0) - (pressed & WHEEL_UP ? 1 : 0)
    return { x, y, left: (buttons & LEFT) !== 0, wheel }
  }

  #holds(modifier: 'shift' | 'control' | 'alt'): boolean {
    for (const keysym of this.#held) if (MODIFIERS[keysym] === modifier) return true
    return false
  }
}
