/**
 * A receiver of events, as its feed (feeds/feed.ts) uses it: the feed connects, sends events in the order of
 * the audit log, and is notified which of them the receiver has. The feed keeps the unreceived ones.
 */

import type { StoredEvent } from './chain.ts'
import type { EventCode } from './events/catalogue.ts'

export interface Sink {
  readonly type: 'log' | 'syslog' | 'snmp' | 'radius' | 'tacacs' | 'webhook' | 'mail'
  /** For people: `tcp://siem:514`. */
  readonly address: string
  /** Identity of the receiver's position across restarts: its address, and the format of its events. */
  readonly identity: string
  /** Returns whether the receiver gets events of this kind. */
  wants(code: EventCode): boolean
  /** Rejects if the receiver cannot be reached, and releases its resources. */
  connect(listener: ConnectionListener): Promise<Connection>
}

export interface ConnectionListener {
  /** Called when the receiver has all events up to this row, as far as its protocol can show. */
  settled(sequence: number): void
  /** Called when the connection is closed; events that are not settled count as not received. */
  broken(reason: string): void
}

export interface Connection {
  /** Resolves when there is room for more. Rejects when the connection is closed. */
  send(events: readonly StoredEvent[]): Promise<void>
  /**
   * Closes in order within a moment: events that the receiver proves to have are reported before it resolves.
   * Never rejects.
   */
  close(): Promise<void>
}

/**
 * Runs `action` after `ms` milliseconds, without keeping the process running for it. Returns a function that
 * cancels it.
 */
export type After = (ms: number, action: () => void) => () => void

export const systemAfter: After = (ms, action) => {
  const timer = setTimeout(action, ms)
  timer.unref()
  return () => clearTimeout(timer)
}

/** Time without failures after which a receiver counts as back. */
const SETTLE_MS = 5000

export interface PresenceOptions {
  after: After
  onDown: (reason: string) => void
  onUp?: () => void
}

/**
 * Presence of a receiver: reports its loss once, and its return only after a while, so that an unstable
 * receiver makes no flood of events.
 */
export class Presence {
  readonly #options: PresenceOptions
  #down = false
  #cancel: (() => void) | undefined

  constructor(options: PresenceOptions) {
    this.#options = options
  }

  /** Notes a sign that the receiver is down. */
  failed(reason: string): void {
    this.#cancel?.()
    this.#cancel = undefined
    if (this.#down) return
    this.#down = true
    this.#options.onDown(reason)
  }

  /** Notes a sign that it is up: accepted if no failure follows. */
  succeeded(): void {
    if (!this.#down || this.#cancel) return
    this.#cancel = this.#options.after(SETTLE_MS, () => {
      this.#cancel = undefined
      this.#down = false
      this.#options.onUp?.()
    })
  }

  /** Reports nothing from now on. */
  close(): void {
    this.#cancel?.()
  }
}
