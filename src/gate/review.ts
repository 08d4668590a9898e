/**
 * Decides whether sessions and sign-ins may continue. Runs after every change of an object that they rest on,
 * and periodically, because time passes and another process may write to the store. Ends those of disabled
 * users, of users that have lost the right, and those whose password, key or certificate is no longer the
 * user's.
 */
import { type Target, targetsOf } from '../access/targets.ts'
import { type Basis, flawOfKey, Grounds, type GroundsOptions, keyOf } from '../identity/basis.ts'
import type { Id } from '../model/objects.ts'
import type { Store } from '../store/store.ts'
import { Pace } from '../threads/pace.ts'
import type { RunningSession, RunningSessions } from './running.ts'
import { type Telling, Withdrawals } from './withdrawals.ts'

/** Milliseconds between full reviews if no change is known. */
export const REVIEW_INTERVAL_MS = 5000
/** Milliseconds between checks for changes by time or by another process. */
export const LOOK_INTERVAL_MS = 1000

export interface ReviewOptions extends GroundsOptions {
  store: GroundsOptions['store'] & Pick<Store, 'access' | 'dataVersion'>
  running: RunningSessions
  /** Ends the session, even if it was stopped before. Returns a function that writes the event. */
  stop: (session: RunningSession, reason: string) => Telling | undefined
  /** Reviews all else that rests on sign-ins, after the sessions. */
  others: (grounds: Grounds, withdrawals: Withdrawals) => Promise<void>
  /** Yields the bases of all sign-ins, the sessions' too. */
  bases: () => Iterable<Basis>
}

export class Review {
  readonly #options: ReviewOptions
  /** The round in progress; resolves when all notices are sent. */
  #current: Promise<Withdrawals> | undefined
  #next: Promise<void> | undefined
  #version: number | undefined
  /** Earliest expiry of the users and API keys looked at since the last round began. */
  #due = Number.POSITIVE_INFINITY

  constructor(options: ReviewOptions) {
    this.#options = options
  }

  /**
   * Resolves when all that runs now has been judged by the store as written until now, and all that ended is
   * in the audit log. Simultaneous calls share one round. Rejects if a session could not be judged or an
   * event not be written; all others have been handled.
   */
  run(): Promise<void> {
    if (!this.#current) {
      this.#current = this.#round().finally(() => {
        this.#current = undefined
      })
      return this.#current.then((withdrawals) => withdrawals.tell())
    }
    // The round in progress may have passed over objects that changed since it began.
    this.#next ??= this.#current
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined
        return this.run()
      })
    return this.#next
  }

  /** Returns a cache for one check of what still holds. */
  grounds(): Grounds {
    const onExpiry = (time: number) => {
      this.#due = Math.min(this.#due, time)
    }
    return new Grounds({ ...this.#options, onExpiry })
  }

  /**
   * Runs a review if another process has written to the store, a user or API key has expired, or a key was
   * revoked. Cheap.
   */
  async look(): Promise<void> {
    const { store, bases, now } = this.#options
    const version = await store.dataVersion()
    const isChanged = this.#version !== undefined && this.#version !== version
    this.#version = version
    const isDue = async () => {
      if (this.#due <= now()) return true
      const pace = new Pace()
      for (const basis of [...bases()]) {
        await pace.step()
        const key = keyOf(basis)
        if (key && flawOfKey(key, this.#options) !== undefined) return true
      }
      return false
    }
    if (isChanged || (await isDue())) await this.run()
  }

  /** Returns why this session has to end, or undefined if it may continue. */
  async flawOf(session: RunningSession, grounds = this.grounds()): Promise<string | undefined> {
    return (
      (await grounds.flawOf(session.basis, session.source.address)) ??
      (await new TargetLook(this.#options.store).flawOf(session))
    )
  }

  async #round(): Promise<Withdrawals> {
    const { running, stop, others } = this.#options
    this.#due = Number.POSITIVE_INFINITY
    const grounds = this.grounds()
    const targets = new TargetLook(this.#options.store)
    const withdrawals = new Withdrawals()
    // Users first: one query for each user serves all their sessions, while each target takes its own.
    for (const flawOf of [
      ({ basis, source }: RunningSession) => grounds.flawOf(basis, source.address),
      (session: RunningSession) => targets.flawOf(session),
    ]) {
      await withdrawals.each(running, async (session) => {
        const reason = await flawOf(session)
        return reason === undefined || !running.find(session.id) ? undefined : stop(session, reason)
      })
    }
    await others(grounds, withdrawals)
    return withdrawals
  }
}

/**
 * Checks whether sessions may keep their targets. Caches each pair of user and target: use one object per
 * check.
 */
class TargetLook {
  readonly #store: Pick<Store, 'access'>
  readonly #granted = new Map<string, Promise<Target[]>>()

  constructor(store: Pick<Store, 'access'>) {
    this.#store = store
  }

  async flawOf({ userId, target, isRecorded }: RunningSession): Promise<string | undefined> {
    const granted = (await this.#targetsOf(userId, target)).find(({ kind }) => kind === target.kind)
    if (!granted) return 'the authorization for this target is gone'
    if (!hasAll(granted, target)) return 'a right of this session was taken away'
    if (granted.isRecorded && !isRecorded) return 'sessions of this target are recorded from now on'
    return granted.isStrict && !target.isStrict
      ? 'sessions of this target are recorded strictly from now on'
      : undefined
  }

  #targetsOf(userId: Id, { accountId, serviceId, protocol }: Target): Promise<Target[]> {
    const asked = `${userId} ${accountId ?? ''} ${serviceId} ${protocol}`
    const known = this.#granted.get(asked)
    if (known) return known
    const { access } = this.#store
    const granted = access
      .sessionTargets(userId, { accountId, serviceId })
      .then((rows) => targetsOf(rows, protocol))
    this.#granted.set(asked, granted)
    return granted
  }
}

function hasAll(granted: Target, { rights }: Target): boolean {
  return rights.every((right) => granted.rights.includes(right))
}
