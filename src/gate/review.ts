/**
 * Whether sessions that run may go on: asked anew after every change of what they stand on, and once in a while,
 * for time passes too and another process may write to the store. Whoever is disabled, whoever lost the right, and
 * whose certificate is over is out.
 */
import { type Target, targetsOf } from '../access/targets.ts'
import type { LaterFlaw } from '../identity/authorities.ts'
import type { Identities } from '../identity/chain.ts'
import { flawOfStanding, type StandingFlaw } from '../identity/standing.ts'
import type { Store } from '../store/store.ts'
import type { RunningSession, RunningSessions } from './running.ts'

/** Milliseconds between reviews when nothing changes: how long a session outlives its user's or its certificate's expiry at most. */
export const REVIEW_INTERVAL_MS = 5000

const STANDING: Readonly<Record<StandingFlaw, string>> = {
  disabled: 'the user is disabled',
  expired: 'the user has expired',
  wrong_source: 'the user may not come from this address any more',
}

const OF_KEY: Readonly<Record<LaterFlaw, string>> = {
  revoked: 'the key or certificate of the sign-in has been revoked',
  certificate_authority: 'the authority of the certificate of the sign-in is no longer one',
  certificate_validity: 'the certificate of the sign-in has expired',
}

type ReviewStore = Pick<Store, 'users' | 'access'>

export interface ReviewOptions {
  store: ReviewStore
  identities: Pick<Identities, 'authorities'>
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
  async flawOf(session: RunningSession): Promise<string | undefined> {
    const { store, identities, now } = this.#options
    const { key } = session
    const flaw = key && identities.authorities.flawSince(key, now())
    return flaw ? OF_KEY[flaw] : await flawOfSession(store, session, now())
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
  const { kind, accountId, serviceId, protocol } = target
  const rows = await store.access.sessionTargets(userId, { accountId, serviceId })
  const granted = targetsOf(rows, protocol).find((one) => one.kind === kind)
  if (!granted) return 'the authorization for this target is gone'
  if (!hasAll(granted, target)) return 'a right of this session was taken away'
  if (granted.isRecorded && !isRecorded) return 'sessions of this target are recorded from now on'
  return granted.isStrict && !target.isStrict
    ? 'sessions of this target are recorded strictly from now on'
    : undefined
}

function hasAll(granted: Target, { rights }: Target): boolean {
  return rights.every((right) => granted.rights.includes(right))
}
