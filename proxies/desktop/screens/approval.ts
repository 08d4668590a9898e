/** The screen of a user that waits for an approval, and the form for the reason of a session. */
import type { ReasonQuestion } from '../../../src/contract/gate.ts'
import { GLYPH_WIDTH } from '../../../src/drawing/font.ts'
import { type ReasonField, reasonFields, wishOf } from '../../wording/reason.ts'
import { FormScreen } from './form.ts'
import { BUTTON_HEIGHT, button, buttonRow, panel } from './parts.ts'
import type { Rectangle, Scene } from './scene.ts'
import { DrawnScreen, GAP, isInside, type KeyPress, LINE, type Size } from './screen.ts'
import { cut, wrapped } from './words.ts'

export interface ApprovalOptions {
  /** The bastion's name. */
  bastion: string
  user: string
  target: string
  /** The approvers asked, how many must agree, and until when. */
  lines: readonly string[]
  /** The last answer. */
  news?: string
}

const COLUMNS = 64
const MAX_LINES = 14
const MAX_NEWS = 4
const LEAVE = 'Withdraw the request'

/** Escape and its button give up. It does not change by itself, so that thousands of them cost nothing. */
export class ApprovalScreen extends DrawnScreen<'cancelled'> {
  readonly isStill = true
  readonly #options: ApprovalOptions
  #button: Rectangle | undefined

  constructor(options: ApprovalOptions, size: Size) {
    super(options, size)
    this.#options = options
  }

  protected override pressed(press: KeyPress): void {
    if ('key' in press && press.key === 'Escape') this.finish('cancelled')
  }

  protected override clicked(at: { x: number; y: number }): void {
    if (this.#button && isInside(this.#button, at)) this.finish('cancelled')
  }

  protected override compose(scene: Scene, body: Rectangle): void {
    const { target, lines, news = '' } = this.#options
    const columns = Math.min(COLUMNS, Math.floor((body.width - 6 * GAP) / GLYPH_WIDTH))
    const room = Math.max(1, Math.floor((body.height - 9 * GAP - BUTTON_HEIGHT) / LINE) - 3)
    const told = news === '' ? [] : wrapped(news, columns, Math.min(MAX_NEWS, room))
    const words = wrapped(lines.join('\n'), columns, Math.min(MAX_LINES, Math.max(1, room - told.length)))
    const height = LINE * (2 + words.length + told.length) + BUTTON_HEIGHT + 9 * GAP
    const box = panel(scene, body, columns, height)
    scene.fill({ left: box.left, top: box.top, width: 6, height: box.height }, 'focus')
    const left = box.left + 2 * GAP
    let top = box.top + 2 * GAP
    const line = (text: string, colour: Parameters<Scene['text']>[3], isBold = false) => {
      scene.text(left, top, cut(text, columns), colour, isBold)
      top += LINE
    }
    line('Waiting for an approval', 'text', true)
    line(target, 'muted')
    top += GAP
    for (const text of words) line(text, 'text')
    top += GAP
    for (const text of told) line(text, 'focus')
    this.#button = buttonRow(
      [LEAVE],
      box.left + box.width - 2 * GAP,
      box.top + box.height - BUTTON_HEIGHT - 2 * GAP,
    )[0]!
    button(scene, this.#button, LEAVE, false)
    const free = Math.floor((this.#button.left - left - GAP) / GLYPH_WIDTH)
    scene.text(left, this.#button.top + 5, cut('Esc withdraws it', free), 'muted')
  }
}

export interface ReasonFormOptions {
  /** The bastion's name. */
  bastion: string
  user: string
  question: ReasonQuestion
  /** The error in the last answers, and these. */
  flaw?: string
  texts?: Partial<Record<ReasonField, string>>
}

/** The form for the reason of a session. */
export function reasonForm({ bastion, user, question, flaw, texts = {} }: ReasonFormOptions, size: Size) {
  const why = flaw ?? question.flaw
  return new FormScreen(
    {
      bastion,
      user,
      heading: 'Why do you open this session?',
      text: wishOf(question),
      ...(why !== undefined && { flaw: why }),
      fields: reasonFields(question).map(({ field, label }) => {
        const value = texts[field]
        return { label, echo: true, ...(value !== undefined && { value }) }
      }),
      button: 'Go on',
    },
    size,
  )
}

/** Returns the answers of a `reasonForm`. */
export function reasonTexts(
  question: ReasonQuestion,
  answers: readonly string[],
): Partial<Record<ReasonField, string>> {
  return Object.fromEntries(reasonFields(question).map(({ field }, index) => [field, answers[index] ?? '']))
}
