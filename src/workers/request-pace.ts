/**
 * How fast one worker's requests may follow that leave something behind: rows of the audit log, sessions, pinned
 * keys. Nothing is refused for being fast: a request waits for its turn, so that a busy client slows its own session
 * down, and a worker that was taken over writes no more than a bounded number of rows.
 */
import { setTimeout as sleep } from 'node:timers/promises'

/** A burst at once, and a rate in the long run. */
export interface Rate {
  burst: number
  perSecond: number
}

/** The requests that have a pace of their own, and what it is counted by. */
export type Paced = 'authenticate' | 'open' | 'hostKey' | 'serviceTicket' | 'event'

/** Above what honest workers need: see decision 078. */
export const RATES: Readonly<Record<Paced, Rate>> = {
  /** Of a connection, which has at most 64 tries before its client is cut off. */
  authenticate: { burst: 100, perSecond: 2 },
  /** Of a sign-in: a person at the menu opens one target after another. */
  open: { burst: 10, perSecond: 0.2 },
  /** Of a session: one for each key exchange. */
  hostKey: { burst: 20, perSecond: 0.1 },
  /** Of a session: one for each connection to its target; each costs the KDC three requests. */
  serviceTicket: { burst: 8, perSecond: 0.05 },
  /** Of a session: files and forwarded connections come fastest. */
  event: { burst: 5_000, perSecond: 500 },
}
/** Of all sign-ins of one worker, and of all other requests of it. */
export const WORKER_RATE: Rate = { burst: 20_000, perSecond: 1_000 }

/** A rate in use: the time at which all that it has let through would be refilled. */
class Turns {
  readonly #rate: Rate
  #until = Number.NEGATIVE_INFINITY

  constructor(rate: Rate) {
    this.#rate = rate
  }

  /** Takes a turn of that weight. Returns the milliseconds until it comes. */
  take(weight: number, now: number): number {
    const { burst, perSecond } = this.#rate
    const full = (burst * 1000) / perSecond
    this.#until = Math.max(this.#until, now) + (weight * 1000) / perSecond
    return Math.max(0, this.#until - now - full)
  }
}

export class RequestPace {
  readonly #turns = new Map<string, Partial<Record<Paced, Turns>>>()
  readonly #ofWorker = new Turns(WORKER_RATE)
  /** Clients that are not signed in do not hold up the sessions of others. */
  readonly #signIns = new Turns(WORKER_RATE)
  readonly #ended = new AbortController()

  /**
   * Resolves when a request of that weight may go on. `of`: the connection, sign-in or session that it is counted by.
   * Rejects when the worker has ended.
   */
  async turn(paced: Paced, of: string, weight = 1): Promise<void> {
    const known = this.#turns.get(of) ?? {}
    this.#turns.set(of, known)
    known[paced] ??= new Turns(RATES[paced])
    const now = performance.now()
    const all = paced === 'authenticate' ? this.#signIns : this.#ofWorker
    const wait = Math.max(known[paced].take(weight, now), all.take(weight, now))
    if (wait > 0) await sleep(wait, undefined, { ref: false, signal: this.#ended.signal })
  }

  /** Forgets a connection, sign-in or session that has ended. */
  forget(of: string): void {
    this.#turns.delete(of)
  }

  /** Rejects all that waits. */
  end(): void {
    this.#ended.abort(new Error('the session worker has ended'))
  }
}
