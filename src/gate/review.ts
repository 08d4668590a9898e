/**
 * Whether sessions that run may go on: asked anew after every change of what they stand on, and once in a while,
 * for time passes too and another process may write to the store. Whoever is disabled, and whoever lost the right,
 * is out.
 */
import { type Target, targetsOf } from '../access/targets.ts'
import { flawOfStanding, type StandingFlaw } from '../identity/standing.ts'
import type { Store } from '../store/store.ts'
import type { RunningSession, RunningSessions } from './running.ts'

/** Milliseconds between reviews when nothing changes: how long a session outlives its user's expiry at most. */
export const REVIEW_INTERVAL_MS = 5000

const STANDING: Readonly<Record<StandingFlaw, string>> = {
  disabled: 'the user is disabled',
  expired: 'the user has expired',
  wrong_source: 'the user may not come from this address any more',
}

type ReviewStore = Pick<Store, 'users' | 'access'>

export interface ReviewOptions {
  store: ReviewStore
  running: RunningSessions
  /** Ends the session; it may have been told before. */
  stop: (session: RunningSession, reason: string) => Promise<void>
  /** Milliseconds since the epoch. */
  now: () => number
}

export class Review {
  readonly #options: ReviewOptions
  #current: Promise<void> | undefined
  #next: Promise<void> | undefined

  constructor(options: ReviewOptions) {
    this.#options = options
  }

  /**
   * Resolves when every session that runs now was asked, after what has been written until now. Many who ask at
   * once are served by one round.
   */
  run(): Promise<void> {
    if (!this.#current) {
      this.#current = this.#round().finally(() => {
        this.#current = undefined
      })
      return this.#current
    }
    // the round under way may have passed what was changed since it began
    this.#next ??= this.#current
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined
        return this.run()
      })
    return this.#next
  }

  /** Why this session has to end; undefined: it may go on. */
  flawOf(session: RunningSession): Promise<string | undefined> {
    return flawOfSession(this.#options.store, session, this.#options.now())
  }

  async #round(): Promise<void> {
    const { running, stop } = this.#options
    let failure: unknown
    for (const session of [...running]) {
      const reason = await this.flawOf(session)
      if (reason === undefined || !running.find(session.id)) continue
      await stop(session, reason).catch((error: unknown) => {
        failure = error
      })
    }
    if (failure !== undefined) throw failure
  }
}

async function flawOfSession(
  store: ReviewStore,
  { userId, source, target, isRecorded }: RunningSession,
  now: number,
): Promise<string | undefined> {
  const user = await store.users.find(userId)
  if (!user) return 'the user was removed'
  const flaw = flawOfStanding(user, source.address, now)
  if (flaw) return STANDING[flaw]
  const { accountId, serviceId, protocol } = target
  const rows = await store.access.sessionTargets(userId, { accountId, serviceId })
  const [granted] = targetsOf(rows, protocol)
  if (!granted) return 'the authorization for this target is gone'
  if (!hasAll(granted, target)) return 'a right of this session was taken away'
  return granted.isRecorded && !isRecorded ? 'sessions of this target are recorded from now on' : undefined
}

function hasAll(granted: Target, { rights }: Target): boolean {
  return rights.every((right) => granted.rights.includes(right))
}
