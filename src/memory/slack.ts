/**
 * Memory that a process holds and does not use: V8 keeps pages with few objects in them, and the C library the holes
 * between what is in use. Both are small beside what a start, or many sessions at once, need for a moment.
 */

/** Milliseconds between two looks, and looks in a row without a user: by then idle threads have ended too. */
const LOOK_MS = 10_000
const EMPTY_LOOKS = 5
/** Fewer users leave too little behind for a collection of everything. */
const LEAST_USERS = 20

export class Slack {
  readonly #trim: () => void
  #look: NodeJS.Timeout | undefined
  /** Most users since the last release. */
  #most = 0
  /** Looks in a row that found none. */
  #empty = 0

  private constructor(trim: () => void) {
    this.#trim = trim
  }

  static async open(): Promise<Slack> {
    return new Slack(await trimOf())
  }

  /**
   * Gives it back now: everything stands still meanwhile, for 75 ms in a worker and up to 150 ms in the broker. V8
   * does its part only if it was started with `--expose-gc` (bin/lean.mjs).
   */
  release(): void {
    globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    this.#trim()
  }

  /** From now on gives it back whenever the last of many users has gone. */
  watch(users: () => number): void {
    this.#look = setInterval(() => this.#watch(users()), LOOK_MS).unref()
  }

  stop(): void {
    clearInterval(this.#look)
  }

  #watch(users: number): void {
    this.#most = Math.max(this.#most, users)
    this.#empty = users === 0 ? this.#empty + 1 : 0
    if (this.#most < LEAST_USERS || this.#empty !== EMPTY_LOOKS) return
    this.#most = 0
    this.release()
  }
}

/** Returns the C library's `malloc_trim`, or a function that does nothing where there is none. */
async function trimOf(): Promise<() => void> {
  try {
    const { default: koffi } = await import('koffi')
    const trim = koffi.load(null).func('int malloc_trim(size_t)')
    return () => void trim(0)
  } catch {
    return () => undefined
  }
}
