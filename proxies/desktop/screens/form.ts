/** Forms with one line per answer: the sign-in, a login at a target, a second factor. */

import type { Challenge, Logon, LogonQuestion } from '../../../src/contract/gate.ts'
import { GLYPH_WIDTH } from '../../../src/drawing/font.ts'
import { qrSquares } from '../../../src/drawing/qr.ts'
import { MAX_TYPED_PASSWORD_BYTES } from '../../../src/model/logon.ts'
import { BUTTON_HEIGHT, button, buttonRow, FIELD_HEIGHT, panel, TextField } from './parts.ts'
import type { Rectangle, Scene } from './scene.ts'
import { DrawnScreen, GAP, isInside, type KeyPress, LINE, type Size } from './screen.ts'
import { cut, wrapped } from './words.ts'

export interface FormField {
  label: string
  /** False if the input shows as dots. */
  echo: boolean
  /** The initial value. */
  value?: string
}

export interface FormOptions {
  /** The bastion's name. */
  bastion: string
  user?: string
  heading: string
  text?: string
  /** The error in the last answers. */
  flaw?: string
  /** Shown as far as there is room; all of them are answered. */
  fields: readonly FormField[]
  /** Absent on a form that waits for something else: there is nothing to send. */
  button?: string
  /** Shown as a QR code above the fields, if there is room. */
  uri?: string
}

export type FormOutcome = { answers: string[] } | 'cancelled'

const COLUMNS = 56
const MAX_LINES = 6
/** Width of a square of a QR code, in units; in pixels it has two at least. */
const MAX_SQUARE = 4
const MIN_SQUARE_PIXELS = 2
const FIELD = LINE + FIELD_HEIGHT + GAP
/** One more than the limit, so that the gate sees that the answer is too long and reports it. */
const MAX_ANSWER = MAX_TYPED_PASSWORD_BYTES + 1

export class FormScreen extends DrawnScreen<FormOutcome> {
  readonly #options: FormOptions
  readonly #fields: readonly TextField[]
  readonly #squares: readonly boolean[][]
  /** The index among the fields, followed by the buttons OK and Cancel. */
  #focus: number
  #places: readonly Rectangle[] = []

  constructor(options: FormOptions, size: Size) {
    super(options, size)
    this.#options = options
    this.#fields = options.fields.map(({ echo, value }) => new TextField(MAX_ANSWER, !echo, value))
    this.#squares = (options.uri === undefined ? undefined : qrSquares(options.uri)) ?? []
    const empty = this.#fields.findIndex(({ value }) => value === '')
    this.#focus = Math.max(0, empty)
  }

  protected override pressed(press: KeyPress): void {
    const field = this.#fields[this.#focus]
    if ('text' in press) {
      if (field) field.press(press)
      else if (press.text === ' ') this.#enter()
      return
    }
    switch (press.key) {
      case 'Enter':
        this.#enter()
        return
      case 'Escape':
        this.finish('cancelled')
        return
      case 'Tab':
        this.#move(press.shift === true ? -1 : 1)
        return
      case 'Down':
        this.#move(1)
        return
      case 'Up':
        this.#move(-1)
        return
      default:
        field?.press(press)
    }
  }

  #move(steps: number): void {
    const places = this.#fields.length + 2
    this.#focus = (this.#focus + steps + places) % places
  }

  /** Moves to the next field; on the last one, or on the button, submits. */
  #enter(): void {
    if (this.#options.button === undefined) {
      if (this.#focus === this.#fields.length + 1) this.finish('cancelled')
      return
    }
    if (this.#focus < this.#fields.length - 1) this.#move(1)
    else if (this.#focus === this.#fields.length + 1) this.finish('cancelled')
    else this.finish({ answers: this.#fields.map(({ value }) => value) })
  }

  protected override clicked(at: { x: number; y: number }): void {
    const place = this.#places.findIndex((box) => isInside(box, at))
    if (place === -1) return
    this.#focus = place
    if (place >= this.#fields.length) this.#enter()
  }

  /** Returns the width of a square of the code within this height, or 0 if there is no code, or no room. */
  #squareFor({ scale }: Scene, height: number): number {
    if (this.#squares.length === 0) return 0
    const square = Math.min(MAX_SQUARE, Math.floor(height / this.#squares.length))
    return square * scale < MIN_SQUARE_PIXELS ? 0 : square
  }

  /** Draws the dark squares that lie side by side as one box. */
  #drawCode(scene: Scene, { left, top }: { left: number; top: number }, square: number): void {
    const side = square * this.#squares.length
    scene.fill({ left, top, width: side, height: side }, 'field')
    for (const [y, row] of this.#squares.entries()) {
      for (let x = row.indexOf(true); x !== -1; ) {
        const end = row.indexOf(false, x)
        const box = {
          left: left + x * square,
          top: top + y * square,
          width: (end - x) * square,
          height: square,
        }
        scene.fill(box, 'text')
        x = row.indexOf(true, end)
      }
    }
  }

  protected override compose(scene: Scene, body: Rectangle): void {
    const { heading, text = '', flaw, fields, button: label } = this.#options
    const columns = Math.min(COLUMNS, Math.floor((body.width - 6 * GAP) / GLYPH_WIDTH))
    const words = [
      ...(text === '' ? [] : wrapped(text, columns, MAX_LINES).map((line) => ({ line, isFlaw: false }))),
      ...(flaw === undefined
        ? []
        : wrapped(flaw, columns, MAX_LINES).map((line) => ({ line, isFlaw: true }))),
    ]
    const textHeight = LINE * (words.length + 1) + BUTTON_HEIGHT + 6 * GAP
    const square = this.#squareFor(scene, body.height - 2 * GAP - textHeight - FIELD)
    const side = square * this.#squares.length
    const around = textHeight + (side === 0 ? 0 : side + GAP)
    const shown = Math.max(1, Math.min(fields.length, Math.floor((body.height - 2 * GAP - around) / FIELD)))
    const box = panel(scene, body, columns, around + FIELD * Math.min(fields.length, shown))
    const left = box.left + 2 * GAP
    let top = box.top + 2 * GAP
    scene.text(left, top, cut(heading, columns), 'text', true)
    top += LINE + GAP
    for (const { line, isFlaw } of words) {
      scene.text(left, top, line, isFlaw ? 'failure' : 'muted')
      top += LINE
    }
    const width = Math.max(0, box.width - 4 * GAP)
    if (side > 0) {
      this.#drawCode(scene, { left, top }, square)
      top += side + GAP
    }
    const first = Math.max(0, Math.min(this.#focus, fields.length - 1) - shown + 1)
    const places: Rectangle[] = fields.map(() => ({ left: 0, top: 0, width: 0, height: 0 }))
    for (const [index, { label: name }] of fields.entries()) {
      if (index < first || index >= first + shown) continue
      scene.text(left, top, cut(name, columns), 'text')
      const place = { left, top: top + LINE, width, height: FIELD_HEIGHT }
      this.#fields[index]?.draw(scene, place, index === this.#focus)
      places[index] = place
      top += FIELD
    }
    const bottom = box.top + box.height - BUTTON_HEIGHT - 2 * GAP
    const right = box.left + box.width - 2 * GAP
    if (label === undefined) {
      const [cancel] = buttonRow(['Cancel'], right, bottom)
      button(scene, cancel!, 'Cancel', this.#focus === fields.length + 1)
      this.#places = [...places, { left: 0, top: 0, width: 0, height: 0 }, cancel!]
      return
    }
    const [ok, cancel] = buttonRow([label, 'Cancel'], right, bottom)
    const isAtButton = this.#focus >= fields.length
    button(scene, ok!, label, !isAtButton || this.#focus === fields.length)
    button(scene, cancel!, 'Cancel', this.#focus === fields.length + 1)
    this.#places = [...places, ok!, cancel!]
  }
}

/** The form for one round of a second factor. */
export function challengeForm(
  { bastion, user, challenge }: { bastion: string; user?: string; challenge: Challenge },
  size: Size,
): FormScreen {
  const { title, instructions, link, prompts } = challenge
  const uri = challenge.uri ?? link
  return new FormScreen(
    {
      bastion,
      ...(user !== undefined && { user }),
      heading: title === '' ? 'One more step' : title,
      text: instructions,
      ...(uri !== undefined && { uri }),
      fields: prompts.map(({ text, echo }) => ({ label: text, echo })),
      ...(link === undefined && { button: 'OK' }),
    },
    size,
  )
}

export interface SignInOptions {
  /** The bastion's name. */
  bastion: string
  /** The login that the client has sent already. */
  login?: string
  /** The error in the last answers. */
  flaw?: string
  /** The assumed keyboard layout, since a typed password is not visible. */
  keyboard?: string
}

/** The form of the sign-in at the bastion. */
export function signInForm({ bastion, login = '', flaw, keyboard }: SignInOptions, size: Size): FormScreen {
  return new FormScreen(
    {
      bastion,
      heading: 'Sign in',
      ...(keyboard !== undefined && { text: `Keyboard: ${keyboard}` }),
      ...(flaw !== undefined && { flaw }),
      fields: [
        { label: 'User', echo: true, value: login },
        { label: 'Password', echo: false },
      ],
      button: 'Sign in',
    },
    size,
  )
}

/** Returns the answers of a `signInForm`. */
export function signInOf(answers: readonly string[]): { login: string; password: string } {
  const [login = '', password = ''] = answers
  return { login, password }
}

/** The form for a login at a target without a stored account. */
export function logonForm(
  { bastion, user, question }: { bastion: string; user?: string; question: LogonQuestion },
  size: Size,
): FormScreen {
  return new FormScreen(
    {
      bastion,
      ...(user !== undefined && { user }),
      heading: `Login at ${question.target}`,
      ...(question.flaw !== undefined && { flaw: question.flaw }),
      fields: [
        ...(question.login === undefined ? [{ label: 'Login', echo: true }] : []),
        {
          label: question.login === undefined ? 'Password' : `Password of ${question.login}`,
          echo: false,
        },
      ],
      button: 'Log in',
    },
    size,
  )
}

/** Returns the answers of a `logonForm`. */
export function logonOf(question: LogonQuestion, answers: readonly string[]): Logon {
  const password = answers.at(-1) ?? ''
  return question.login === undefined ? { login: answers[0] ?? '', password } : { password }
}
