/**
 * Shows a few lines of the bastion over a target's desktop: the coming end of the session, or a missing
 * right. They are drawn on the client only, and again when the target draws over them; after some seconds the
 * target is asked to redraw the area.
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
  /** Drawing must wait: an update of the target is in progress, or the client's queue is full. */
  isBusy: () => boolean
  /** Sends an update to the client. */
  draw: (update: Update) => void
  /** Asks the target to redraw this area. */
  refresh: (area: Rectangle) => void
  /** Milliseconds of a monotonic clock. */
  now?: () => number
}

/** Seconds that a message is shown. */
export const OVERLAY_SECONDS = 8
/** The latest messages shown; older ones are dropped. */
const MAX_MESSAGES = 4
const MAX_LINES = 3
const COLUMNS = 80
/** Interval of checks whether to redraw or remove the lines. */
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
  /** The target has drawn on the desktop: clients accept no update before they are ready for that. */
  #isDrawn = false
  /** The lines differ from those that the client shows. */
  #isDue = false
  /** The area where the lines are shown. */
  #area: Rectangle | undefined
  #clock: NodeJS.Timeout | undefined

  constructor(options: OverlayOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  /** The client has confirmed this desktop. Shows nothing at 8 bits per pixel: the target has the palette. */
  desktop(desktop: Desktop): void {
    this.deactivated()
    if (desktop.depth !== 8) this.#desktop = { ...desktop, depth: depthFor(desktop.depth) }
  }

  /** The target has deactivated its desktop. */
  deactivated(): void {
    this.#desktop = undefined
    this.#area = undefined
    this.#isDrawn = false
    this.#isDue = true
  }

  /** The target has drawn. */
  painted(): void {
    this.#isDrawn = true
    this.#isDue = true
  }

  /** Shows a message below the others; showing it again extends its time. */
  show(text: string, seconds: number = OVERLAY_SECONDS): void {
    const others = this.#messages.filter((message) => message.text !== text)
    this.#messages = [...others, { text, until: this.#now() + 1000 * seconds }].slice(-MAX_MESSAGES)
    this.#isDue = true
    if (this.#clock) return
    this.#clock = setInterval(() => this.#tick(), TICK_MS)
    this.#tick()
  }

  /** Stops drawing. */
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
      // Messages expire even while there is no desktop to show them on.
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

  /** Draws at the middle of the top edge, where windows have their titles and users do not type. */
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
