/** Converts a client's keys to text and named keys for the bastion's screens (MS-RDPBCGR 2.2.8.1.1.3.1.1). */
import { aloneOf, marked } from '../../desktop/screens/accents.ts'
import type { KeyPress, NamedKey } from '../../desktop/screens/screen.ts'
import type { InputEvent } from '../codec/input.ts'
import { type Layout, layoutOf, type Written } from './layouts.ts'

type KeyEvent = Extract<InputEvent, { kind: 'key' }>
type CharacterEvent = Extract<InputEvent, { kind: 'character' }>

/** Added to scancodes after E0. */
const EXTENDED = 0x100

const MODIFIERS: Readonly<Record<number, 'shift' | 'control' | 'alt' | 'altGr'>> = {
  [0x2a]: 'shift',
  [0x36]: 'shift',
  // Windows' keyboard hook marks the right shift key so. E0 with the left shift's code is not a shift, but
  // accompanies arrow keys.
  [EXTENDED | 0x36]: 'shift',
  [0x1d]: 'control',
  [EXTENDED | 0x1d]: 'control',
  [0x38]: 'alt',
  [EXTENDED | 0x38]: 'altGr',
}

const CAPS_LOCK = 0x3a
const NUM_LOCK = 0x45
/** Bits of InputEvent's `locks`. */
const LOCK = { num: 2, caps: 4 } as const

const NAMED: Readonly<Record<number, NamedKey>> = {
  [0x01]: 'Escape',
  [0x0e]: 'Backspace',
  [0x0f]: 'Tab',
  [0x1c]: 'Enter',
  [EXTENDED | 0x1c]: 'Enter',
  [EXTENDED | 0x47]: 'Home',
  [EXTENDED | 0x48]: 'Up',
  [EXTENDED | 0x49]: 'PageUp',
  [EXTENDED | 0x4b]: 'Left',
  [EXTENDED | 0x4d]: 'Right',
  [EXTENDED | 0x4f]: 'End',
  [EXTENDED | 0x50]: 'Down',
  [EXTENDED | 0x51]: 'PageDown',
  [EXTENDED | 0x53]: 'Delete',
}

/** Keys of the keypad, which are arrows without num lock. */
const KEYPAD: Readonly<Record<number, string>> = {
  [0x47]: '7',
  [0x48]: '8',
  [0x49]: '9',
  [0x4b]: '4',
  [0x4c]: '5',
  [0x4d]: '6',
  [0x4f]: '1',
  [0x50]: '2',
  [0x51]: '3',
  [0x52]: '0',
}
const DECIMAL = 0x53
/** Independent of modifiers and locks. */
const OPERATORS: Readonly<Record<number, string>> = {
  [0x37]: '*',
  [0x4a]: '-',
  [0x4e]: '+',
  [EXTENDED | 0x35]: '/',
}

/** Control characters that phones send in place of keys. */
const CONTROLS: Readonly<Record<number, NamedKey>> = {
  8: 'Backspace',
  9: 'Tab',
  10: 'Enter',
  13: 'Enter',
  27: 'Escape',
  127: 'Delete',
}

export class Keyboard {
  readonly #layout: Layout
  /** Scancodes of the modifiers and locks held down. */
  readonly #held = new Set<number>()
  #caps = false
  /** Num lock, on until the client sends its state. */
  #num = true
  /** The mark of a dead key that was pressed. */
  #mark: string | undefined
  /** The high surrogate of a character of two UTF-16 units. */
  #half: number | undefined

  /** keyboardLayout of CS_CORE. */
  constructor(keyboardLayout: number) {
    this.#layout = layoutOf(keyboardLayout)
  }

  /** Name of the layout, for users. */
  get name(): string {
    return this.#layout.name
  }

  /** Resets the state for another screen. */
  begin(): void {
    this.#mark = undefined
    this.#half = undefined
  }

  /** Sets the locks' state. Clients send it when their window gets the focus, so no key is held then. */
  locks(flags: number): void {
    this.#num = (flags & LOCK.num) !== 0
    this.#caps = (flags & LOCK.caps) !== 0
    this.#held.clear()
  }

  /** Returns undefined if the key means nothing to a screen. */
  key({ code, extended, isDown }: KeyEvent): KeyPress | undefined {
    // E1 begins only Pause, and its second half looks like num lock.
    if (extended === 2) return undefined
    const scancode = code | (extended === 1 ? EXTENDED : 0)
    if (scancode in MODIFIERS || scancode === CAPS_LOCK || scancode === NUM_LOCK) {
      this.#hold(scancode, isDown)
      return undefined
    }
    if (!isDown) return undefined
    const shift = this.#holds('shift')
    const key = NAMED[scancode] ?? this.#keypadKey(scancode, shift)
    if (key !== undefined) return { key, shift }
    return this.#write(this.#written(scancode, shift))
  }

  /** Returns undefined if the character means nothing to a screen or is incomplete. */
  character({ code, isDown }: CharacterEvent): KeyPress | undefined {
    if (!isDown) return undefined
    const half = this.#half
    this.#half = undefined
    if ((code & 0xfc00) === 0xd800) {
      this.#half = code
      return undefined
    }
    if ((code & 0xfc00) === 0xdc00) {
      return half === undefined ? undefined : { text: String.fromCharCode(half, code) }
    }
    const key = CONTROLS[code]
    if (key !== undefined) return { key, shift: false }
    return code < 0x20 ? undefined : { text: String.fromCharCode(code) }
  }

  #hold(scancode: number, isDown: boolean): void {
    if (!isDown) {
      this.#held.delete(scancode)
      return
    }
    // Toggles on the first press only, since a held key repeats.
    if (!this.#held.has(scancode)) {
      if (scancode === CAPS_LOCK) this.#caps = !this.#caps
      if (scancode === NUM_LOCK) this.#num = !this.#num
    }
    this.#held.add(scancode)
  }

  #holds(modifier: 'shift' | 'control' | 'alt' | 'altGr'): boolean {
    for (const scancode of this.#held) if (MODIFIERS[scancode] === modifier) return true
    return false
  }

  #keypadKey(scancode: number, shift: boolean): NamedKey | undefined {
    if (this.#num !== shift || (!(scancode in KEYPAD) && scancode !== DECIMAL)) return undefined
    return NAMED[scancode | EXTENDED]
  }

  #written(scancode: number, shift: boolean): Written | undefined {
    const layout = this.#layout
    // Windows sends AltGr with Ctrl, and treats Ctrl and Alt as AltGr.
    const [control, alt] = [this.#holds('control'), this.#holds('alt')]
    if (this.#holds('altGr') || (control && alt))
      return (shift ? layout.shiftAltGr : layout.altGr).get(scancode)
    if (control || alt) return undefined
    if (this.#num !== shift && scancode in KEYPAD) return { text: KEYPAD[scancode]! }
    if (scancode === DECIMAL) return { text: layout.decimal }
    if (scancode in OPERATORS) return { text: OPERATORS[scancode]! }
    const isShifted = shift !== (this.#caps && layout.isShiftedByCaps(scancode))
    return (isShifted ? layout.shift : layout.plain).get(scancode)
  }

  #write(written: Written | undefined): KeyPress | undefined {
    if (!written) return undefined
    const before = this.#mark
    this.#mark = undefined
    if ('text' in written) return { text: before === undefined ? written.text : marked(before, written.text) }
    if (before !== undefined) return { text: aloneOf(before) + aloneOf(written.mark) }
    this.#mark = written.mark
    return undefined
  }
}
