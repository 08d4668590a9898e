/**
 * A screen of the bastion's own while somebody is shown it, whatever protocol their desktop has: its clock, keys and
 * clicks a few a turn, what of it is drawn when, and its outcome. How it is drawn is the protocol's.
 */
import { performance } from 'node:perf_hooks'
import { Damage } from './screens/damage.ts'
import type { Rectangle } from './screens/scene.ts'
import type { KeyPress, PointerState, Screen } from './screens/screen.ts'

/** Parts of a screen that are being drawn, one a turn. */
export interface Drawing {
  parts: readonly Rectangle[]
  draw: (part: Rectangle) => void
}

export interface StageOptions {
  /** Nothing is drawn while it is full: `settle` when it is not any more. */
  stream: { readonly congested: boolean }
  /** Milliseconds of a clock that never goes back. */
  now?: () => number
  /** Somebody is there to be drawn for. */
  isAwaited: () => boolean
  /** Begins to draw what of the stage's `damage` is due; undefined: nothing is. */
  begin: (screen: Screen) => Drawing | undefined
}

/** Screens are told the time so often. */
const TICK_MS = 250
/** Between two drawings: nobody types or scrolls faster than that. */
export const UPDATE_INTERVAL_MS = 30
/** After a large one it is longer, so that no size of a desktop, and nobody who scrolls on it, takes all of a core. */
const PIXELS_A_MS = 16_000
/** The other side has so long for the rest of what is being drawn. */
export const RELEASE_MS = 10_000
/** Events of keys and the pointer that are dealt with in one turn of the event loop, and that wait at most. */
const EVENTS_A_TURN = 16
export const MAX_EVENTS = 1024

type Input = { press: KeyPress } | { pointer: PointerState }

export class Stage {
  readonly #options: StageOptions
  readonly #now: () => number
  /** What the other side does not have yet, in pixels. */
  readonly damage = new Damage()
  #screen: Screen | undefined
  #onOutcome: ((outcome: unknown) => void) | undefined
  #events: Input[] = []
  /** In this turn. */
  #dealtWith = 0
  #isHeld = false
  /** The button was held already when the screen came: it is not for this one. */
  #isStale = false
  /** The next events, and the next part of a drawing, have a turn of their own. */
  #eventsTurn: NodeJS.Immediate | undefined
  #drawingTurn: NodeJS.Immediate | undefined
  #clock: NodeJS.Timeout | undefined
  #drawing: { left: Rectangle[]; draw: (part: Rectangle) => void } | undefined
  /** When the next drawing may begin. */
  #next = Number.NEGATIVE_INFINITY
  #pause: NodeJS.Timeout | undefined
  /** Resolves when what is being drawn is whole. */
  #onWhole: (() => void) | undefined
  #isOver = false

  constructor(options: StageOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  get screen(): Screen | undefined {
    return this.#screen
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Shows it from now on; `onOutcome` is called once, and never after another screen has taken its place. */
  show<Outcome>(screen: Screen<Outcome>, onOutcome?: (outcome: Outcome) => void): void {
    if (this.#isOver) return
    this.#screen = screen
    this.#onOutcome = onOutcome as ((outcome: unknown) => void) | undefined
    this.#events = []
    this.#isStale = this.#isHeld
    this.damage.add({ left: 0, top: 0, width: screen.width, height: screen.height })
    screen.tick(this.#now())
    this.#clock ??= setInterval(() => this.#tick(), TICK_MS)
    this.settle()
  }

  key(press: KeyPress): void {
    this.#queue({ press })
  }

  pointer({ left, ...state }: PointerState): void {
    this.#isHeld = left
    if (!left) this.#isStale = false
    this.#queue({ pointer: { ...state, left: left && !this.#isStale } })
  }

  /** After anything that happened: the outcome, and what can be drawn. */
  settle(): void {
    if (this.#isOver) return
    const screen = this.#screen
    const tell = this.#onOutcome
    if (screen?.outcome !== undefined && tell) {
      this.#onOutcome = undefined
      // Whoever is told may take the connection over, which is not for the middle of something.
      queueMicrotask(() => {
        if (this.#screen === screen && !this.#isOver) tell(screen.outcome)
      })
    }
    if (this.#drawing) this.#draw()
    else this.#begin()
  }

  /**
   * Shows nothing any more. Resolves when what is being drawn is whole, or when it is closed. Rejects where the other side
   * does not take the rest of it in time.
   */
  async release(): Promise<void> {
    this.#screen = undefined
    this.#onOutcome = undefined
    if (this.#drawing) await this.#whenWhole()
    this.close()
  }

  async #whenWhole(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    try {
      await new Promise<void>((resolve, reject) => {
        this.#onWhole = resolve
        const late = () => reject(new Error('the viewer does not take what it is shown'))
        timer = setTimeout(late, RELEASE_MS)
      })
    } finally {
      clearTimeout(timer)
    }
  }

  /** The connection is gone, or somebody else's. */
  close(): void {
    this.#isOver = true
    clearInterval(this.#clock)
    clearTimeout(this.#pause)
    clearImmediate(this.#eventsTurn)
    clearImmediate(this.#drawingTurn)
    this.#events = []
    this.#onWhole?.()
  }

  #queue(event: Input): void {
    if (!this.#screen || this.#events.length >= MAX_EVENTS) return
    this.#events.push(event)
    this.#work()
  }

  /** What a key costs, as a search of thousands of targets, nobody can make the others wait for many times over. */
  #work(): void {
    while (
      this.#events.length > 0 &&
      this.#dealtWith < EVENTS_A_TURN &&
      this.#screen?.outcome === undefined
    ) {
      const event = this.#events.shift()!
      this.#dealtWith++
      if ('press' in event) this.#screen?.key(event.press)
      else this.#screen?.pointer(event.pointer)
    }
    if (this.#screen?.outcome !== undefined) this.#events = []
    this.#eventsTurn ??= setImmediate(() => {
      this.#eventsTurn = undefined
      this.#dealtWith = 0
      if (this.#events.length > 0) this.#work()
    })
    this.settle()
  }

  #tick(): void {
    this.#screen?.tick(this.#now())
    this.settle()
  }

  #begin(): void {
    const screen = this.#screen
    const { stream, isAwaited, begin } = this.#options
    if (!screen || !isAwaited() || this.#pause || stream.congested) return
    const wait = this.#next - this.#now()
    if (wait > 0) {
      this.#pause = setTimeout(() => {
        this.#pause = undefined
        this.settle()
      }, wait)
      return
    }
    for (const box of screen.takeDamage()) this.damage.add(box)
    const drawing = begin(screen)
    if (!drawing) return
    const pixels = drawing.parts.reduce((sum, { width, height }) => sum + width * height, 0)
    this.#next = this.#now() + Math.max(UPDATE_INTERVAL_MS, pixels / PIXELS_A_MS)
    if (drawing.parts.length === 0) return
    this.#drawing = { left: [...drawing.parts], draw: drawing.draw }
    this.#draw()
  }

  /** A part a turn, while the other side takes them. */
  #draw(): void {
    const drawing = this.#drawing
    if (!drawing || this.#drawingTurn || this.#options.stream.congested) return
    const part = drawing.left.shift()
    if (part) drawing.draw(part)
    if (drawing.left.length === 0) {
      this.#drawing = undefined
      this.#onWhole?.()
      this.#begin()
      return
    }
    this.#drawingTurn = setImmediate(() => {
      this.#drawingTurn = undefined
      this.#draw()
    })
  }
}
