/**
 * Decides whether sessions and sign-ins may continue. Asks the store's log of changes what has changed, by this
 * process or another one, and judges what rests on it; also what has come to its time. Ends the sessions of disabled
 * users, of users that have lost the right, and those whose password, key or certificate is no longer the user's.
 */
import { type Basis, Grounds, type GroundsOptions } from '../identity/basis.ts'
import type { Id } from '../model/objects.ts'
import type { Store } from '../store/store.ts'
import { ApprovalLook } from './approval-look.ts'
import { Changes } from './changes.ts'
import { Due } from './due.ts'
import type { RunningSession, RunningSessions } from './running.ts'
import { SecretLook } from './secret-look.ts'
import type { SessionHours } from './session-hours.ts'
import { TargetLook } from './target-look.ts'
import { Touched } from './touched.ts'
import { chosen, type Telling, Withdrawals } from './withdrawals.ts'

/** Milliseconds between notices to what was ended and still runs. */
export const REMINDER_INTERVAL_MS = 5000
/** Milliseconds between reviews, for changes by another process, times that have come and revoked keys. */
export const REVIEW_INTERVAL_MS = 1000

/** For the user: which of them it is would have to be looked up. */
const OVER = 'the user, or the key, token or certificate of the sign-in, has expired'

export interface ReviewOptions extends GroundsOptions {
  store: GroundsOptions['store'] & Pick<Store, 'access' | 'accounts' | 'approvals' | 'changes'>
  running: RunningSessions
  /** Ends the session, even if it was stopped before. Returns a function that writes the event. */
  stop: (session: RunningSession, reason: string) => Telling | undefined
  /** Reviews all else that rests on sign-ins and was touched, after the sessions. */
  others: (grounds: Grounds, withdrawals: Withdrawals, touched: Touched) => Promise<void>
  /** Yields the bases of all sign-ins, the sessions' too. */
  bases: () => Iterable<Basis>
  /** Returns the users of whom checkouts are out. */
  holders: () => Promise<Id[]>
  hours: SessionHours
}

export class Review {
  readonly #options: ReviewOptions
  readonly #changes: Changes
  readonly #due = new Due()
  /** The times as they were said last, for as long as nothing can be judged: extended ones too. */
  readonly #lastSaid = new Due()
  /** Still to be judged: noted since the last round began, or not judged by it because of an error. */
  #owed = new Touched()
  /** The round in progress; resolves when all notices are sent. */
  #current: Promise<Withdrawals> | undefined
  #next: Promise<void> | undefined
  /** When was judged last: if the clock was set back, what was within its time may not be any more. */
  #judgedAt = Number.NEGATIVE_INFINITY
  /** The authorities and the revocation list by which keys were judged. */
  #authorities: unknown
  #revoked: unknown

  constructor(options: ReviewOptions) {
    this.#options = options
    this.#changes = new Changes(options.store.changes)
  }

  /**
   * Resolves when all that has changed until now has been judged, and all that ended is in the audit log.
   * Simultaneous calls share one round. Rejects if something could not be judged, which the next call does again,
   * or an event not be written; all others have been handled.
   */
  run(): Promise<void> {
    if (!this.#current) {
      this.#current = this.#round().finally(() => {
        this.#current = undefined
      })
      return this.#current.then(async (withdrawals) => {
        await withdrawals.tell()
        await this.#changes.removeOld()
      })
    }
    // The round in progress may have read the log before the latest change.
    this.#next ??= this.#current
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined
        return this.run()
      })
    return this.#next
  }

  /** Does the same for all that runs: the database may be another one than before, and its log of changes too. */
  runAll(): Promise<void> {
    this.#changes.forget()
    return this.run()
  }

  /**
   * Ends the sessions that rest on a sign-in whose end has come, or whose timeframe is over, as far as it was known
   * before the database went away. Resolves when that is in the audit log. What has changed meanwhile is judged by
   * `runAll`.
   */
  async runWithoutStore(): Promise<void> {
    const { bases, hours, now, running, stop } = this.#options
    const due = new Set(this.#lastSaid.take(now(), bases))
    const timed = new Set(hours.take(() => running))
    const owed = this.#owed
    if (due.size + timed.size === 0 && owed.isNothing) return
    const withdrawals = new Withdrawals()
    const isDue = (session: RunningSession) =>
      session.isWithdrawn === undefined &&
      // The round in which the database went away has taken the time of those that are owed.
      (due.has(session.basis) || timed.has(session) || owed.hasSession(session))
    await withdrawals.each(await chosen(running, isDue), async (session) => {
      const reason = due.has(session.basis) ? OVER : hours.flawOf(session)
      if (reason !== undefined) return stop(session, reason)
      if (timed.has(session)) hours.again(session)
      return undefined
    })
    await withdrawals.tell()
  }

  /**
   * Judges what rests on this basis with the next round. Call it when something rests on a basis that was judged
   * before: what changed meanwhile has touched nobody.
   */
  watch(basis: Basis): void {
    this.#owed.addBasis(basis)
  }

  /** Returns a cache for one check of what still holds. */
  grounds(): Grounds {
    const onEnd = (basis: Basis, time: number) => {
      this.#due.set(basis, time)
      this.#lastSaid.replace(basis, time)
    }
    return new Grounds({ ...this.#options, onEnd })
  }

  /** Returns why this session has to end, or undefined if it may continue. */
  async flawOf(session: RunningSession): Promise<string | undefined> {
    try {
      return (
        (await this.grounds().flawOf(session.basis, session.source.address)) ??
        (await this.#targets().flawOf(session)) ??
        (await new ApprovalLook(this.#options).flawOf(session)) ??
        (await new SecretLook(this.#options.store).flawOf(session))
      )
    } catch (error) {
      this.watch(session.basis)
      throw error
    }
  }

  #targets(): TargetLook {
    const { hours, now, store } = this.#options
    return new TargetLook(store, now, (session, rows) => hours.judged(session, rows))
  }

  /** Returns what has to be judged now, and owes it no longer. */
  async #touched(): Promise<Touched> {
    const { bases, holders, hours, identities, now, running, store } = this.#options
    await this.#changes.read(this.#owed)
    const time = now()
    if (time < this.#judgedAt) this.#owed.addAll()
    this.#judgedAt = time
    for (const session of hours.take(() => running)) this.#owed.addSession(session)
    for (const basis of this.#due.take(time, bases)) this.#owed.addBasis(basis)
    const { authorities } = identities
    const revoked = authorities.revoked
    if (authorities !== this.#authorities || revoked !== this.#revoked) this.#owed.addKeys()
    this.#authorities = authorities
    this.#revoked = revoked
    await this.#owed.resolve(store.access, async () => [
      ...new Set([...this.userIds(), ...(await holders())]),
    ])
    const touched = this.#owed
    this.#owed = new Touched()
    return touched
  }

  /** Returns the users that anything rests on. */
  userIds(): Id[] {
    const ids = new Set<Id>()
    for (const { userId } of this.#options.bases()) if (userId !== undefined) ids.add(userId)
    return [...ids]
  }

  async #round(): Promise<Withdrawals> {
    const withdrawals = new Withdrawals()
    const touched = await this.#touched()
    if (touched.isNothing) return withdrawals
    let isJudged = false
    try {
      await this.#judge(touched, withdrawals)
      isJudged = !withdrawals.hasFailed
    } finally {
      if (!isJudged) this.#owed.merge(touched)
    }
    return withdrawals
  }

  async #judge(touched: Touched, withdrawals: Withdrawals): Promise<void> {
    const { running, stop, others } = this.#options
    const grounds = this.grounds()
    const targets = this.#targets()
    const approvals = new ApprovalLook(this.#options)
    const secrets = new SecretLook(this.#options.store)
    const isTouched = (session: RunningSession) =>
      session.isWithdrawn === undefined && touched.hasSession(session)
    const sessions = await chosen(running, isTouched)
    // Judge the users first: a disabled one loses all sessions before any target is asked for.
    for (const { prepare, flawOf } of [
      {
        prepare: (some: readonly RunningSession[]) => grounds.prepare(some.map(({ basis }) => basis)),
        flawOf: ({ basis, source }: RunningSession) => grounds.flawOf(basis, source.address),
      },
      {
        prepare: (some: readonly RunningSession[]) => targets.prepare(some),
        flawOf: (session: RunningSession) => targets.flawOf(session),
      },
      {
        prepare: (some: readonly RunningSession[]) => approvals.prepare(some),
        flawOf: (session: RunningSession) => approvals.flawOf(session),
      },
      {
        prepare: (some: readonly RunningSession[]) => secrets.prepare(some),
        flawOf: (session: RunningSession) => secrets.flawOf(session),
      },
    ]) {
      await withdrawals.each(
        sessions.filter(({ isWithdrawn }) => isWithdrawn === undefined),
        async (session) => {
          const reason = await flawOf(session)
          return reason === undefined || !running.find(session.id) ? undefined : stop(session, reason)
        },
        prepare,
      )
    }
    await others(grounds, withdrawals, touched)
  }
}
