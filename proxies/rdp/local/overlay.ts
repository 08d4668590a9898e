/**
 * A few lines of the bastion's own over a target's desktop: what is about to end the session, which right is missing.
 * They are drawn on the client's side only, again where the target has drawn over them, and after some seconds the
 * target is asked to draw what was there.
 */

import { GLYPH_WIDTH } from '../../../src/drawing/font.ts'
import { bandsOf } from '../../desktop/screens/damage.ts'
import { type Rectangle, Scene } from '../../desktop/screens/scene.ts'
import { GAP, LINE } from '../../desktop/screens/screen.ts'
import { wrapped } from '../../desktop/screens/words.ts'
import type { Desktop } from '../codec/capabilities.ts'
import type { Update } from '../codec/updates.ts'
import { type Depth, depthFor, encodeCanvas } from './bitmaps.ts'

export interface OverlayOptions {
  /** Just now nothing may be drawn: an update of the target's is under way, or the client has enough to take. */
  isBusy: () => boolean
  /** Toward the client. */
  draw: (update: Update) => void
  /** The target is to draw this part of its desktop again. */
  refresh: (area: Rectangle) => void
  /** Milliseconds of a clock that never goes back. */
  now?: () => number
}

/** How long one is shown. */
export const OVERLAY_SECONDS = 8
/** Of the last ones that were told; the others before them are gone. */
const MAX_MESSAGES = 4
const MAX_LINES = 3
const COLUMNS = 80
/** It is looked so often whether it has to be drawn again, or taken away. */
const TICK_MS = 250

interface Message {
  text: string
  /** Milliseconds. */
  until: number
}

export class Overlay {
  readonly #options: OverlayOptions
  readonly #now: () => number
  #messages: Message[] = []
  #desktop: (Desktop & { depth: Depth }) | undefined
  /** The target has drawn on it: clients take nothing before they are ready for that. */
  #isDrawn = false
  /** There is something to draw that the client does not show. */
  #isDue = false
  /** Where it is shown. */
  #area: Rectangle | undefined
  #clock: NodeJS.Timeout | undefined

  constructor(options: OverlayOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  /** The client has agreed to this one. On one of 8 bits, whose colours are the target's, nothing is shown. */
  desktop(desktop: Desktop): void {
    this.deactivated()
    if (desktop.depth !== 8) this.#desktop = { ...desktop, depth: depthFor(desktop.depth) }
  }

  /** The target has taken its desktop away. */
  deactivated(): void {
    this.#desktop = undefined
    this.#area = undefined
    this.#isDrawn = false
    this.#isDue = true
  }

  /** The target draws. */
  painted(): void {
    this.#isDrawn = true
    this.#isDue = true
  }

  /** From now on, under those that are shown already; one that is, stays longer. */
  show(text: string, seconds: number = OVERLAY_SECONDS): void {
    const others = this.#messages.filter((message) => message.text !== text)
    this.#messages = [...others, { text, until: this.#now() + 1000 * seconds }].slice(-MAX_MESSAGES)
    this.#isDue = true
    if (this.#clock) return
    this.#clock = setInterval(() => this.#tick(), TICK_MS)
    this.#tick()
  }

  /** Nothing is drawn any more. */
  close(): void {
    clearInterval(this.#clock)
    this.#clock = undefined
    this.#messages = []
    this.#desktop = undefined
  }

  #tick(): void {
    const { isBusy, refresh } = this.#options
    const left = this.#messages.filter(({ until }) => this.#now() < until)
    if (left.length < this.#messages.length) this.#isDue = true
    this.#messages = left
    if (!this.#desktop) {
      // Those that nobody could be shown are over, too.
      if (left.length === 0) this.#rest()
      return
    }
    if (!this.#isDrawn || !this.#isDue || isBusy()) return
    const before = this.#area
    this.#area = left.length > 0 ? this.#draw(this.#desktop) : undefined
    this.#isDue = false
    if (before && !(this.#area && contains(this.#area, before))) refresh(before)
    if (left.length === 0) this.#rest()
  }

  #rest(): void {
    clearInterval(this.#clock)
    this.#clock = undefined
  }

  /** In the middle of the upper edge, where windows have their titles and nobody types. */
  #draw({ width, height, depth }: Desktop & { depth: Depth }): Rectangle {
    const scene = new Scene(width, height)
    const columns = Math.max(1, Math.min(COLUMNS, Math.floor(scene.width / GLYPH_WIDTH) - 4))
    const lines = this.#messages.flatMap(({ text }) => wrapped(text, columns, MAX_LINES))
    const longest = Math.max(...lines.map((line) => [...line].length))
    const box = {
      left: 0,
      top: 0,
      width: Math.min(scene.width, longest * GLYPH_WIDTH + 4 * GAP),
      height: Math.min(scene.height, lines.length * LINE + 2 * GAP),
    }
    box.left = Math.floor((scene.width - box.width) / 2)
    scene.fill(box, 'bar')
    scene.outline(box, 'recording')
    for (const [row, line] of lines.entries()) {
      scene.text(box.left + 2 * GAP, GAP + row * LINE, line, 'barText')
    }
    const { scale } = scene
    const area = {
      left: box.left * scale,
      top: 0,
      width: box.width * scale,
      height: box.height * scale,
    }
    for (const band of bandsOf(area)) {
      for (const update of encodeCanvas(band.left, band.top, scene.paint(band), depth))
        this.#options.draw(update)
    }
    return area
  }
}

function contains(outer: Rectangle, inner: Rectangle): boolean {
  return (
    outer.left <= inner.left &&
    outer.top <= inner.top &&
    inner.left + inner.width <= outer.left + outer.width &&
    inner.top + inner.height <= outer.top + outer.height
  )
}
