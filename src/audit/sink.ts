/** What a receiver of events looks like to the audit log. */
import type { StoredEvent } from './chain.ts'

export interface Sink {
  readonly type: 'log' | 'syslog' | 'snmp' | 'metrics' | 'metrics'
  /** For people: `tcp://siem:514`. */
  readonly address: string
  /** Takes the event and returns at once; never throws. */
  send(event: StoredEvent): void
  /** Messages that wait for the receiver. */
  readonly queued: number
  /** Messages that were given up since the start. */
  readonly lost: number
  /** Sends what can still be sent within a moment, and frees what it holds. */
  close(): Promise<void>
}

/** Hears once that a sink's receiver cannot be reached, and again only after it was back. */
export type SinkDown = (sink: Pick<Sink, 'type' | 'address'>, reason: string) => void

/** Runs `action` after `ms` milliseconds, without keeping the process alive for it; answers how to cancel. */
export type After = (ms: number, action: () => void) => () => void

export const systemAfter: After = (ms, action) => {
  const timer = setTimeout(action, ms)
  timer.unref()
  return () => clearTimeout(timer)
}

/** How long a receiver has to be well before it counts as back. */
const SETTLE_MS = 5000

/**
 * Whether a receiver is there: says once that it went away, and again only after it was back for a while, so that
 * one that comes and goes makes no flood of events.
 */
export class Presence {
  readonly #after: After
  readonly #onDown: (reason: string) => void
  #down = false
  #cancel: (() => void) | undefined

  constructor(after: After, onDown: (reason: string) => void) {
    this.#after = after
    this.#onDown = onDown
  }

  /** A sign that the receiver is not there. */
  failed(reason: string): void {
    this.#cancel?.()
    this.#cancel = undefined
    if (this.#down) return
    this.#down = true
    this.#onDown(reason)
  }

  /** A sign that it may be there: believed when no failure follows. */
  succeeded(): void {
    if (!this.#down || this.#cancel) return
    this.#cancel = this.#after(SETTLE_MS, () => {
      this.#cancel = undefined
      this.#down = false
    })
  }
}
