/**
 * What a receiver of events looks like to its feed (feeds/feed.ts): it is connected to, is given events in the order
 * of the audit log, and says which of them the receiver has. What it keeps of them is the feed's business.
 */

import type { StoredEvent } from './chain.ts'
import type { EventCode } from './events/catalogue.ts'

export interface Sink {
  readonly type: 'log' | 'syslog' | 'snmp'
  /** For people: `tcp://siem:514`. */
  readonly address: string
  /** Names the receiver's position from one start to the next: where it is, and in what form it gets events. */
  readonly identity: string
  /** Whether events of this kind go there. */
  wants(code: EventCode): boolean
  /** Rejects when the receiver cannot be reached, and frees what it held for that. */
  connect(listener: ConnectionListener): Promise<Connection>
}

export interface ConnectionListener {
  /** The receiver has all events up to this row, as far as its protocol can tell. */
  settled(sequence: number): void
  /** The connection is over; what is not settled counts as not received. */
  broken(reason: string): void
}

export interface Connection {
  /** Resolves when there is room for more. Rejects when it cannot go on; the connection is over then. */
  send(events: readonly StoredEvent[]): Promise<void>
  /** Ends in order within a moment: what the receiver proves to have is told before it resolves. Never rejects. */
  close(): Promise<void>
}

/** Runs `action` after `ms` milliseconds, without keeping the process alive for it; answers how to cancel. */
export type After = (ms: number, action: () => void) => () => void

export const systemAfter: After = (ms, action) => {
  const timer = setTimeout(action, ms)
  timer.unref()
  return () => clearTimeout(timer)
}

/** How long a receiver has to be well before it counts as back. */
const SETTLE_MS = 5000

export interface PresenceOptions {
  after: After
  onDown: (reason: string) => void
  onUp?: () => void
}

/**
 * Whether a receiver is there: says once that it went away, and that it is back only after it was for a while, so that
 * one that comes and goes makes no flood of events.
 */
export class Presence {
  readonly #options: PresenceOptions
  #down = false
  #cancel: (() => void) | undefined

  constructor(options: PresenceOptions) {
    this.#options = options
  }

  /** A sign that the receiver is not there. */
  failed(reason: string): void {
    this.#cancel?.()
    this.#cancel = undefined
    if (this.#down) return
    this.#down = true
    this.#options.onDown(reason)
  }

  /** A sign that it may be there: believed when no failure follows. */
  succeeded(): void {
    if (!this.#down || this.#cancel) return
    this.#cancel = this.#options.after(SETTLE_MS, () => {
      this.#cancel = undefined
      this.#down = false
      this.#options.onUp?.()
    })
  }

  /** Nothing is told from now on. */
  close(): void {
    this.#cancel?.()
  }
}
