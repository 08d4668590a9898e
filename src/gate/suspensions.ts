/**
 * Sessions whose client's input is held: by an administrator's order, or until a watcher is there. A session goes
 * on when no cause is left. The event is stored before the proxy is told.
 */
import type { Audit } from '../audit/events/catalogue.ts'
import type { GateNotice } from '../contract/gate.ts'
import { type HoldCause, holdOf, type OrderedBy } from './holds.ts'
import { killFields, type RunningSession } from './running.ts'

export interface SuspensionsOptions {
  audit: Audit
  notify: (notice: GateNotice) => void
  /** Milliseconds since the epoch. */
  now: () => number
}

export class Suspensions {
  readonly #options: SuspensionsOptions
  readonly #turns = new WeakMap<RunningSession, Promise<unknown>>()

  constructor(options: SuspensionsOptions) {
    this.#options = options
  }

  /** Holds input from now on. A new order replaces the reason of the one before. */
  hold(session: RunningSession, cause: HoldCause, reason: string, by?: OrderedBy): Promise<void> {
    return this.#inTurn(session, cause, async () => {
      await this.#record('session.suspend', session, reason, by)
      this.holdNow(session, cause, reason, by)
    })
  }

  /** Writes the event of a hold of the broker's own that began before. */
  told(session: RunningSession, reason: string): Promise<void> {
    return this.#record('session.suspend', session, reason, undefined)
  }

  /** The same without an event: its caller writes one, or has written it. */
  holdNow(session: RunningSession, cause: HoldCause, reason: string, by?: OrderedBy): void {
    session.holds ??= new Map()
    session.holds.set(cause, {
      reason: by ? `${reason} (${by.name})` : reason,
      ...(by && { by: by.name }),
      since: this.#options.now(),
    })
    this.#tell(session)
  }

  /** Takes this cause back. Returns false if there was none. */
  release(session: RunningSession, cause: HoldCause, by?: OrderedBy): Promise<boolean> {
    return this.#inTurn(session, cause, async () => {
      const held = session.holds?.get(cause)
      if (!held) return false
      await this.#record('session.resume', session, undefined, by)
      // The last watcher may have left meanwhile: the event of that follows.
      if (session.holds?.get(cause) !== held) return false
      session.holds.delete(cause)
      this.#tell(session)
      return true
    })
  }

  /** Does orders about one session one after the other, so that each event is about what is held then. */
  #inTurn<T>(session: RunningSession, cause: HoldCause, change: () => Promise<T>): Promise<T> {
    // A watcher that leaves holds at once, and what releases before must not wait until then.
    if (cause !== 'order') return change()
    const before = this.#turns.get(session)
    const done = before ? before.then(change, change) : change()
    this.#turns.set(session, done)
    return done
  }

  #record(
    code: 'session.suspend' | 'session.resume',
    session: RunningSession,
    reason: string | undefined,
    by: OrderedBy | undefined,
  ): Promise<void> {
    return this.#options.audit.record(code, {
      ...killFields(session),
      ...(by && { user: by.name }),
      ...(by?.apiKey !== undefined && { api_key: by.apiKey }),
      ...(reason !== undefined && { reason }),
    })
  }

  #tell(session: RunningSession): void {
    const held = holdOf(session)
    const { id } = session
    this.#options.notify(
      held ? { type: 'suspend', session: id, reason: held.reason } : { type: 'resume', session: id },
    )
  }
}
