/** When there is time for what nobody waits for: the broker's own thread relays sessions, and says so by its idleness. */
import { type EventLoopUtilization, performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'

/** Part of the time that the event loop is at work, from which on it is busy. */
const BUSY = 0.8
const LOOK_MS = 1000
/** A broker that is never idle gets its recordings indexed all the same. */
const MAX_WAIT_MS = 10_000

/** What was busy since the last look counts: a session that is just over was no quiet time. */
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
