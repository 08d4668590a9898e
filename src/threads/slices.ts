/**
 * Work that comes in heaps, such as the messages of one read or the ends of many connections: done in slices of the
 * event loop's time, so that a key of another session waits for one slice and not for the heap.
 */
import { setImmediate as aside } from 'node:timers/promises'
import { SLICE_MS } from './pace.ts'

/** Most milliseconds of one turn, in a loop that is busy with other work. */
const LONGEST_SLICE_MS = 8
/** Share of a long turn: the heap goes on, however busy the loop is. */
const SHARE = 1 / 4

export class Slices {
  readonly #waiting: (() => void)[] = []
  readonly #onRest: (() => void) | undefined
  #isRunning = false
  /** Milliseconds that this turn of the loop has for it, those that were used, and the end of the turn. */
  #slice = SLICE_MS
  #used = 0
  #turn: Promise<void> | undefined

  /** `onRest` is called when nothing waits any more. */
  constructor(onRest?: () => void) {
    this.#onRest = onRest
  }

  /** Number of works that wait. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Runs `work` after all that came before it: at once if this turn of the loop has time for it. */
  run(work: () => void): void {
    this.#waiting.push(work)
    if (!this.#isRunning) void this.#go()
  }

  async #go(): Promise<void> {
    this.#isRunning = true
    for (;;) {
      if (this.#used >= this.#slice) await this.#turn
      const work = this.#waiting.shift()
      if (!work) break
      const begin = performance.now()
      attempt(work)
      // Continuations of its promises run now, and count too.
      await undefined
      this.#used += performance.now() - begin
      this.#turn ??= this.#next()
    }
    this.#isRunning = false
    this.#onRest?.()
  }

  async #next(): Promise<void> {
    const begin = performance.now()
    await aside()
    const share = (performance.now() - begin) * SHARE
    this.#slice = Math.min(LONGEST_SLICE_MS, Math.max(SLICE_MS, share))
    this.#used = 0
    this.#turn = undefined
  }
}

/** A fault of one does not keep the others from running; it is thrown where nothing catches it, as before. */
function attempt(work: () => void): void {
  try {
    work()
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}
