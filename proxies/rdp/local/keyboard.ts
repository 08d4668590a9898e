/** Keys and characters of a client as what they write, for the bastion's own screens (MS-RDPBCGR 2.2.8.1.1.3.1.1). */
import { aloneOf, marked } from '../../desktop/screens/accents.ts'
import type { KeyPress, NamedKey } from '../../desktop/screens/screen.ts'
import type { InputEvent } from '../codec/input.ts'
import { type Layout, layoutOf, type Written } from './layouts.ts'

type KeyEvent = Extract<InputEvent, { kind: 'key' }>
type CharacterEvent = Extract<InputEvent, { kind: 'character' }>

/** Scancodes after E0 are these and this. */
const EXTENDED = 0x100

const MODIFIERS: Readonly<Record<number, 'shift' | 'control' | 'alt' | 'altGr'>> = {
  [0x2a]: 'shift',
  [0x36]: 'shift',
  // Windows' hook of keys marks the right one so; the left one with it is none, but a companion of arrows.
  [EXTENDED | 0x36]: 'shift',
  [0x1d]: 'control',
  [EXTENDED | 0x1d]: 'control',
  [0x38]: 'alt',
  [EXTENDED | 0x38]: 'altGr',
}

const CAPS_LOCK = 0x3a
const NUM_LOCK = 0x45
/** Of InputEvent's `locks`. */
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

/** The keypad's, which num lock makes arrows of. */
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
/** The same whatever is held. */
const OPERATORS: Readonly<Record<number, string>> = {
  [0x37]: '*',
  [0x4a]: '-',
  [0x4e]: '+',
  [EXTENDED | 0x35]: '/',
}

/** Control characters that stand for keys, which phones send. */
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
  /** Scancodes of the modifiers and locks that are held. */
  readonly #held = new Set<number>()
  #caps = false
  /** Until the client says something else. */
  #num = true
  /** Of a dead key that was pressed. */
  #mark: string | undefined
  /** The first half of a character that is two of UTF-16. */
  #half: number | undefined

  /** As CS_CORE has it. */
  constructor(keyboardLayout: number) {
    this.#layout = layoutOf(keyboardLayout)
  }

  /** What it is taken to be, for people. */
  get name(): string {
    return this.#layout.name
  }

  /** Another screen is shown. */
  begin(): void {
    this.#mark = undefined
    this.#half = undefined
  }

  /** What the client's locks are. It says so when its window gets the keyboard: then nothing is held. */
  locks(flags: number): void {
    this.#num = (flags & LOCK.num) !== 0
    this.#caps = (flags & LOCK.caps) !== 0
    this.#held.clear()
  }

  /** undefined: nothing for a screen. */
  key({ code, extended, isDown }: KeyEvent): KeyPress | undefined {
    // After E1 there is only Pause, whose second half looks like num lock.
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

  /** undefined: nothing for a screen, or not all of a character. */
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
    // A key that is held repeats.
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
    // Windows sends AltGr with Ctrl, and takes Ctrl and Alt for it.
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
