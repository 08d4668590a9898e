/**
 * Runs one of the bastion's own screens in any desktop protocol: its clock, a few keys and clicks per turn,
 * the timing of its drawing, and its outcome. The protocol draws.
 */
import { performance } from 'node:perf_hooks'
import { Damage } from './screens/damage.ts'
import type { Rectangle } from './screens/scene.ts'
import type { KeyPress, PointerState, Screen } from './screens/screen.ts'

/** Parts of a screen to draw, one per turn. */
export interface Drawing {
  parts: readonly Rectangle[]
  draw: (part: Rectangle) => void
}

export interface StageOptions {
  /** Nothing is drawn while it is congested; the caller calls `settle` when it no longer is. */
  stream: { readonly congested: boolean }
  /** Milliseconds of a clock that never goes back. */
  now?: () => number
  /** True if the viewer waits for an update. */
  isAwaited: () => boolean
  /** Begins to draw the due part of the stage's `damage`. Returns undefined if nothing is due. */
  begin: (screen: Screen) => Drawing | undefined
}

/** The interval of the screens' clock. */
const TICK_MS = 250
/** Between two drawings: no user types or scrolls faster. */
export const UPDATE_INTERVAL_MS = 30
/**
 * A larger drawing is followed by a longer pause, so that neither a large desktop nor constant scrolling uses
 * a whole core.
 */
const PIXELS_A_MS = 16_000
/** Time for the viewer to accept the rest of a drawing. */
export const RELEASE_MS = 10_000
/** Key and pointer events that are handled in one turn of the event loop, and that may wait. */
const EVENTS_A_TURN = 16
export const MAX_EVENTS = 1024

type Input = { press: KeyPress } | { pointer: PointerState }

export class Stage {
  readonly #options: StageOptions
  readonly #now: () => number
  /** The pixels that the viewer does not have yet. */
  readonly damage = new Damage()
  #screen: Screen | undefined
  #onOutcome: ((outcome: unknown) => void) | undefined
  #events: Input[] = []
  /** Events handled in this turn. */
  #dealtWith = 0
  #isHeld = false
  /** Set while a button held since before this screen is ignored. */
  #isStale = false
  /** The next events, and the next part of a drawing, run in a turn of their own. */
  #eventsTurn: NodeJS.Immediate | undefined
  #drawingTurn: NodeJS.Immediate | undefined
  #clock: NodeJS.Timeout | undefined
  #drawing: { left: Rectangle[]; draw: (part: Rectangle) => void } | undefined
  /** The earliest time of the next drawing. */
  #next = Number.NEGATIVE_INFINITY
  #pause: NodeJS.Timeout | undefined
  /** Resolves when the current drawing is complete. */
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

  /**
   * Shows the screen from now on. `onOutcome` is called once, and never after another screen has replaced it.
   */
  show<Outcome>(screen: Screen<Outcome>, onOutcome?: (outcome: Outcome) => void): void {
    if (this.#isOver) return
    this.#screen = screen
    this.#onOutcome = onOutcome as ((outcome: unknown) => void) | undefined
    this.#events = []
    this.#isStale = this.#isHeld
    this.damage.add({ left: 0, top: 0, width: screen.width, height: screen.height })
    screen.tick(this.#now())
    if (screen.isStill) {
      clearInterval(this.#clock)
      this.#clock = undefined
    } else this.#clock ??= setInterval(() => this.#tick(), TICK_MS)
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

  /** Reports the outcome and draws the changes, after any event. */
  settle(): void {
    if (this.#isOver) return
    const screen = this.#screen
    const tell = this.#onOutcome
    if (screen?.outcome !== undefined && tell) {
      this.#onOutcome = undefined
      // The callback may take over the connection, which must not happen in the middle of an event.
      queueMicrotask(() => {
        if (this.#screen === screen && !this.#isOver) tell(screen.outcome)
      })
    }
    if (this.#drawing) this.#draw()
    else this.#begin()
  }

  /**
   * Removes the screen. Resolves when the current drawing is complete or the stage is closed. Rejects if the
   * viewer does not accept the rest in time.
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
        const late = () =>
          reject(new Error(`the viewer has not read its screen in ${RELEASE_MS / 1000} seconds`))
        timer = setTimeout(late, RELEASE_MS)
      })
    } finally {
      clearTimeout(timer)
    }
  }

  /** Stops everything: the connection is closed, or has another owner. */
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

  /**
   * Bounds the events per turn: a key may be expensive, such as a search of thousands of targets, and other
   * sessions must not wait for many of them.
   */
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

  /** Draws one part per turn, while the viewer accepts them. */
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
