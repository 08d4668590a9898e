/** A screen for a wait: for the connection to a target, or for an approval. */
import { GLYPH_WIDTH } from '../../../src/drawing/font.ts'
import { BUTTON_HEIGHT, button, buttonRow, panel } from './parts.ts'
import type { Rectangle, Scene } from './scene.ts'
import { DrawnScreen, GAP, isInside, type KeyPress, LINE, type Size } from './screen.ts'
import { cut, wrapped } from './words.ts'

export interface WaitingOptions {
  /** The bastion's name. */
  bastion: string
  user?: string
  heading: string
  text: string
}

const COLUMNS = 64
const MAX_LINES = 12
/** Positions of the moving mark. */
const STEPS = 8

/** Escape and its button cancel. The caller replaces the screen when the wait ends. */
export class WaitingScreen extends DrawnScreen<'cancelled'> {
  readonly #heading: string
  #text: string
  #button: Rectangle | undefined
  #began: number | undefined
  #seconds = 0

  constructor(options: WaitingOptions, size: Size) {
    super(options, size)
    this.#heading = options.heading
    this.#text = options.text
  }

  /** Changes the text. */
  say(text: string): void {
    this.#text = text
  }

  protected override pressed(press: KeyPress): void {
    if ('key' in press && press.key === 'Escape') this.finish('cancelled')
  }

  protected override clicked(at: { x: number; y: number }): void {
    if (this.#button && isInside(this.#button, at)) this.finish('cancelled')
  }

  protected override passed(now: number): void {
    this.#began ??= now
    this.#seconds = Math.floor((now - this.#began) / 1000)
  }

  protected override compose(scene: Scene, body: Rectangle): void {
    const columns = Math.min(COLUMNS, Math.floor((body.width - 6 * GAP) / GLYPH_WIDTH))
    const room = Math.max(1, Math.floor((body.height - 9 * GAP - BUTTON_HEIGHT) / LINE) - 2)
    const lines = wrapped(this.#text, columns, Math.min(MAX_LINES, room))
    const box = panel(scene, body, columns, LINE * (lines.length + 1) + BUTTON_HEIGHT + 9 * GAP)
    const left = box.left + 2 * GAP
    let top = box.top + 2 * GAP
    scene.text(left, top, cut(this.#heading, columns), 'text', true)
    top += LINE + GAP
    for (const line of lines) {
      scene.text(left, top, line, 'text')
      top += LINE
    }
    const track = { left, top: top + GAP, width: Math.max(0, box.width - 4 * GAP), height: 4 }
    scene.fill(track, 'line')
    const width = Math.floor(track.width / STEPS)
    scene.fill({ ...track, left: left + width * (this.#seconds % STEPS), width }, 'focus')
    this.#button = buttonRow(
      ['Cancel'],
      box.left + box.width - 2 * GAP,
      box.top + box.height - BUTTON_HEIGHT - 2 * GAP,
    )[0]!
    button(scene, this.#button, 'Cancel', true)
  }
}
