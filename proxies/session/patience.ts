/** The time without input after which a client in the lobby is sent away; longer while it waits for an approval. */

const LONGEST_TIMER_MS = 2 ** 31 - 1

export class Patience {
  readonly #idleMs: number
  readonly #onOver: () => void
  #timer: NodeJS.Timeout
  #isStopped = false

  constructor(idleMs: number, onOver: () => void) {
    this.#idleMs = idleMs
    this.#onOver = onOver
    this.#timer = setTimeout(onOver, idleMs)
  }

  /** Begins anew, after input. */
  refresh(): void {
    if (!this.#isStopped) this.#timer.refresh()
  }

  /** Lasts that much longer from now on: the client can do nothing but wait. 0: as usual. */
  extend(milliseconds: number): void {
    if (this.#isStopped) return
    clearTimeout(this.#timer)
    const total = Math.min(this.#idleMs + Math.max(0, milliseconds), LONGEST_TIMER_MS)
    this.#timer = setTimeout(this.#onOver, total)
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }
}
