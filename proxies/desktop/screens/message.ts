/** A message with one button: a refusal, an event, or the notice of recording. */
import { GLYPH_WIDTH } from '../../../src/drawing/font.ts'
import { BUTTON_HEIGHT, button, buttonRow, panel } from './parts.ts'
import type { Rectangle, Scene } from './scene.ts'
import { DrawnScreen, GAP, type KeyPress, LINE, type Size } from './screen.ts'
import { cut, wrapped } from './words.ts'

export interface MessageOptions {
  /** The bastion's name. */
  bastion: string
  user?: string
  heading: string
  text: string
  tone: 'plain' | 'failure' | 'recording'
  button: string
  /** Seconds until it closes by itself. */
  seconds?: number
  /** The action that the countdown announces: `goes on`, `closes`. */
  after?: string
  /** Set if it interrupts the user: keys typed at that moment were not meant for it. */
  isSudden?: boolean
}

/** Idle time before keys and clicks count on a sudden message. */
const QUIET_MS = 1_000
const COLUMNS = 64
const MAX_LINES = 20
/** Time to read a message, in seconds. */
export const MESSAGE_SECONDS = 60

/** Closes on any key or click. */
export class MessageScreen extends DrawnScreen<'closed'> {
  readonly #options: MessageOptions
  #began: number | undefined
  #now = 0
  /** The time of the last ignored key or click. */
  #quietFrom: number | undefined

  constructor(options: MessageOptions, size: Size) {
    super(options, size)
    this.#options = options
  }

  protected override pressed(_press: KeyPress): void {
    this.#close()
  }

  protected override clicked(_at: { x: number; y: number }): void {
    this.#close()
  }

  #close(): void {
    const quiet = this.#now - (this.#quietFrom ?? this.#began ?? this.#now)
    if (this.#options.isSudden && quiet < QUIET_MS) this.#quietFrom = this.#now
    else this.finish('closed')
  }

  protected override passed(now: number): void {
    this.#began ??= now
    this.#now = now
    if (this.#left === 0) this.finish('closed')
  }

  /** Returns the whole seconds until it closes, or undefined if it stays. */
  get #left(): number | undefined {
    const { seconds } = this.#options
    if (seconds === undefined) return undefined
    return Math.max(0, Math.ceil(seconds - (this.#now - (this.#began ?? this.#now)) / 1000))
  }

  protected override compose(scene: Scene, body: Rectangle): void {
    const { heading, text, tone, button: label, after = 'closes' } = this.#options
    const columns = Math.min(COLUMNS, Math.floor((body.width - 6 * GAP) / GLYPH_WIDTH))
    const room = Math.max(1, Math.floor((body.height - 8 * GAP - BUTTON_HEIGHT) / LINE) - 2)
    const lines = wrapped(text, columns, Math.min(MAX_LINES, room))
    const box = panel(scene, body, columns, LINE * (lines.length + 1) + BUTTON_HEIGHT + 7 * GAP)
    const mark = { left: box.left, top: box.top, width: 6, height: box.height }
    scene.fill(mark, tone === 'plain' ? 'focus' : tone)
    const left = box.left + 2 * GAP
    let top = box.top + 2 * GAP
    scene.text(left, top, cut(heading, columns), tone === 'failure' ? 'failure' : 'text', true)
    top += LINE + GAP
    for (const line of lines) {
      scene.text(left, top, line, 'text')
      top += LINE
    }
    const place = buttonRow(
      [label],
      box.left + box.width - 2 * GAP,
      box.top + box.height - BUTTON_HEIGHT - 2 * GAP,
    )[0]!
    button(scene, place, label, true)
    const seconds = this.#left
    if (seconds === undefined) return
    const countdown = `${after} in ${seconds} s`
    scene.text(left, place.top + 5, cut(countdown, Math.floor((place.left - left) / GLYPH_WIDTH)), 'muted')
  }
}

/** The reason for a session that failed or has ended. */
export function failureMessage(
  options: Pick<MessageOptions, 'bastion' | 'user' | 'heading' | 'text' | 'isSudden'>,
  size: Size,
): MessageScreen {
  return new MessageScreen({ ...options, tone: 'failure', button: 'Close', seconds: MESSAGE_SECONDS }, size)
}

/** The message of the day, which closes after a time to read it. */
export function dayMessage(
  { bastion, user, text }: { bastion: string; user: string; text: string },
  size: Size,
): MessageScreen {
  return new MessageScreen(
    {
      bastion,
      user,
      heading: 'Message of the day',
      text,
      tone: 'plain',
      button: 'Go on',
      seconds: MESSAGE_SECONDS,
      after: 'goes on',
    },
    size,
  )
}

/** The notice before a desktop: closes after `seconds`, or on a key. */
export function recordedNotice(
  { bastion, user, target, seconds }: { bastion: string; user: string; target: string; seconds: number },
  size: Size,
): MessageScreen {
  return new MessageScreen(
    {
      bastion,
      user,
      heading: 'This session is recorded',
      text: `What is shown on ${target} and what is done there is recorded, and may be watched while it happens.\n\nPress any key to go on.`,
      tone: 'recording',
      button: 'Go on',
      seconds,
      after: 'goes on',
    },
    size,
  )
}
