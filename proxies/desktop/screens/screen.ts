/**
 * The bastion's own screens on a desktop: the list of targets, forms, messages. They are state machines: keys
 * and the pointer go in, changed rectangles and an outcome come out. The code that shows a screen owns the
 * connection and the clock.
 */
import type { Canvas } from '../../../src/drawing/canvas.ts'
import { GLYPH_HEIGHT, GLYPH_WIDTH } from '../../../src/drawing/font.ts'
import { type Rectangle, Scene } from './scene.ts'
import { cut } from './words.ts'

export type NamedKey =
  | 'Enter'
  | 'Escape'
  | 'Backspace'
  | 'Delete'
  | 'Tab'
  | 'Left'
  | 'Right'
  | 'Up'
  | 'Down'
  | 'PageUp'
  | 'PageDown'
  | 'Home'
  | 'End'

/**
 * A key that goes down or repeats, except modifiers alone. Text depends on the layout, and never has Ctrl or
 * Alt held.
 */
export type KeyPress = { text: string } | { key: NamedKey; shift?: boolean }

/**
 * The pointer's position in pixels, and the state of its left button. `wheel`: steps down, negative for up.
 */
export interface PointerState {
  x: number
  y: number
  left: boolean
  wheel?: number
}

export interface Size {
  width: number
  height: number
}

export interface Screen<Outcome = unknown> {
  /** In pixels. */
  readonly width: number
  readonly height: number
  /** Undefined while the screen is open. Input after an outcome has no effect. */
  readonly outcome: Outcome | undefined
  /** Set if it changes by input only: the clock need not run. */
  readonly isStill?: boolean
  resize(size: Size): void
  key(press: KeyPress): void
  pointer(state: PointerState): void
  /** `now`: milliseconds of a clock that never goes back. Called at least every second. */
  tick(now: number): void
  /**
   * Returns the changes since the last call, at first everything: a few rectangles of pixels inside the
   * screen.
   */
  takeDamage(): Rectangle[]
  /** Draws a part of the rectangles that `takeDamage` has returned, in the colours of `PALETTE`. */
  paint(part: Rectangle): Canvas
}

/** Height of the bar at the top, in units. */
const BAR = GLYPH_HEIGHT + 10
/** The gap between elements, in units. */
export const GAP = 8
export const LINE = GLYPH_HEIGHT + 3

/**
 * The base of all screens: the bar with the bastion's name, the pointer's clicks, and the changes to draw.
 */
export abstract class DrawnScreen<Outcome> implements Screen<Outcome> {
  readonly #bastion: string
  readonly #user: string
  #size: Size
  #outcome: Outcome | undefined
  /** The scene that the viewer has. */
  #shown: Scene | undefined
  #scale = 1
  #isHeld = false
  /** Set after a resize, until the new positions are known. */
  #isStale = false

  /** `user`: the signed-in user, shown in the bar. */
  constructor({ bastion, user = '' }: { bastion: string; user?: string }, size: Size) {
    this.#bastion = bastion
    this.#user = user
    this.#size = size
  }

  get width(): number {
    return this.#size.width
  }

  get height(): number {
    return this.#size.height
  }

  get outcome(): Outcome | undefined {
    return this.#outcome
  }

  resize({ width, height }: Size): void {
    this.#size = { width, height }
    this.#isStale = true
  }

  key(press: KeyPress): void {
    if (this.#outcome === undefined) this.pressed(press)
  }

  pointer({ x, y, left, wheel }: PointerState): void {
    const begins = left && !this.#isHeld
    this.#isHeld = left
    if (this.#outcome !== undefined) return
    if (this.#isStale) this.#compose()
    if (wheel !== undefined && wheel !== 0) this.wheeled(wheel)
    const at = { x: Math.floor(x / this.#scale), y: Math.floor(y / this.#scale) }
    if (begins) this.clicked(at)
    else if (left) this.dragged(at)
    else this.released()
  }

  tick(now: number): void {
    if (this.#outcome === undefined) this.passed(now)
  }

  takeDamage(): Rectangle[] {
    const before = this.#shown
    const scene = this.#compose()
    this.#shown = scene
    return before ? scene.changes(before) : [scene.area]
  }

  paint(part: Rectangle): Canvas {
    this.#shown ??= this.#compose()
    return this.#shown.paint(part)
  }

  #compose(): Scene {
    const scene = new Scene(this.width, this.height)
    this.#scale = scene.scale
    this.#isStale = false
    this.#bar(scene)
    this.compose(scene, { left: 0, top: BAR, width: scene.width, height: Math.max(0, scene.height - BAR) })
    return scene
  }

  #bar(scene: Scene): void {
    scene.fill({ left: 0, top: 0, width: scene.width + 1, height: BAR }, 'bar')
    const columns = Math.floor((scene.width - 2 * GAP) / GLYPH_WIDTH)
    const name = cut(this.#bastion, columns)
    scene.text(GAP, 5, name, 'barText', true)
    const user = cut(this.#user, columns - [...name].length - 2)
    scene.text(scene.width - GAP - GLYPH_WIDTH * [...user].length, 5, user, 'barMuted')
  }

  protected finish(outcome: Outcome): void {
    this.#outcome ??= outcome
  }

  /** Draws everything below the bar, and keeps the positions for clicks. */
  protected abstract compose(scene: Scene, body: Rectangle): void
  protected abstract pressed(press: KeyPress): void
  /** In units, like the methods below. */
  protected abstract clicked(at: { x: number; y: number }): void
  /** Called while the button is held. */
  protected dragged(_at: { x: number; y: number }): void {}
  /** Called for the pointer while its button is not held. */
  protected released(): void {}
  protected wheeled(_steps: number): void {}
  protected passed(_now: number): void {}
}

export function isInside(
  { left, top, width, height }: Rectangle,
  { x, y }: { x: number; y: number },
): boolean {
  return x >= left && x < left + width && y >= top && y < top + height
}
