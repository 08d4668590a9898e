/**
 * Finds quiet times for work that can wait: the broker's own thread relays sessions, and its idleness shows a
 * quiet time.
 */
import { type EventLoopUtilization, performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'

/** Utilization of the event loop from which on it counts as busy. */
const BUSY = 0.8
const LOOK_MS = 1000
/** Limit of the wait, so that recordings of a busy broker are indexed too. */
const MAX_WAIT_MS = 10_000

/** Measures the load since the last check: a session that has just ended was no quiet time. */
export class QuietTimes {
  readonly #isBusy: () => boolean
  readonly #lookMs: number

  constructor(options: { isBusy?: () => boolean; lookMs?: number } = {}) {
    this.#isBusy = options.isBusy ?? eventLoopIsBusy()
    this.#lookMs = options.lookMs ?? LOOK_MS
  }

  /** Resolves at the next quiet time, after ten seconds at the latest, or when `signal` is aborted. */
  async wait(signal: AbortSignal): Promise<void> {
    for (let waited = 0; waited < MAX_WAIT_MS && this.#isBusy() && !signal.aborted; waited += this.#lookMs) {
      await sleep(this.#lookMs, undefined, { ref: false, signal }).catch(() => undefined)
    }
  }
}

function eventLoopIsBusy(): () => boolean {
  let last: EventLoopUtilization = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    return utilization > BUSY
  }
}
