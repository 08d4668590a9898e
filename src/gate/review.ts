/**
 * Whether what runs may go on: asked anew after every change of what it stands on, and once in a while, for time
 * passes too and another process may write to the store. Whoever is disabled, whoever lost the right, and whose
 * password, key or certificate is no longer theirs is out.
 */
import { type Target, targetsOf } from '../access/targets.ts'
import { type Basis, flawOfKey, Grounds, type GroundsOptions, keyOf } from '../identity/basis.ts'
import type { Id } from '../model/objects.ts'
import type { Store } from '../store/store.ts'
import type { RunningSession, RunningSessions } from './running.ts'
import { type Telling, Withdrawals } from './withdrawals.ts'

/** Milliseconds between reviews of everything when nothing is known to have changed. */
export const REVIEW_INTERVAL_MS = 5000
/** Milliseconds between looks whether something has changed that only time or another process can change. */
export const LOOK_INTERVAL_MS = 1000

export interface ReviewOptions extends GroundsOptions {
  store: GroundsOptions['store'] & Pick<Store, 'access' | 'dataVersion'>
  running: RunningSessions
  /** Ends the session, which may have been told before; answers with what writes so. */
  stop: (session: RunningSession, reason: string) => Telling | undefined
  /** Reviews what else rests on sign-ins, after the sessions. */
  others: (grounds: Grounds, withdrawals: Withdrawals) => Promise<void>
  /** All that rests on a sign-in, the sessions too. */
  bases: () => Iterable<Basis>
}

export class Review {
  readonly #options: ReviewOptions
  /** Of the round under way, when everybody was told. */
  #current: Promise<Withdrawals> | undefined
  #next: Promise<void> | undefined
  #version: number | undefined
  /** When the first of the users and API keys expires that were looked at since the last round began. */
  #due = Number.POSITIVE_INFINITY

  constructor(options: ReviewOptions) {
    this.#options = options
  }

  /**
   * Resolves when all that runs now was asked, after what has been written until now, and what ended stands in the
   * audit log. Many who ask at once are served by one round. Rejects when somebody could not be judged, or something
   * not be written: all others were told.
   */
  run(): Promise<void> {
    if (!this.#current) {
      this.#current = this.#round().finally(() => {
        this.#current = undefined
      })
      return this.#current.then((withdrawals) => withdrawals.tell())
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

  /** For one look whether something still holds. */
  grounds(): Grounds {
    const onExpiry = (time: number) => {
      this.#due = Math.min(this.#due, time)
    }
    return new Grounds({ ...this.#options, onExpiry })
  }

  /** Reviews when another process has written to the store, when somebody has expired, or a key was revoked. Cheap. */
  async look(): Promise<void> {
    const { store, bases, now } = this.#options
    const version = await store.dataVersion()
    const isChanged = this.#version !== undefined && this.#version !== version
    this.#version = version
    const isDue = () => {
      if (this.#due <= now()) return true
      for (const basis of bases()) {
        const key = keyOf(basis)
        if (key && flawOfKey(key, this.#options) !== undefined) return true
      }
      return false
    }
    if (isChanged || isDue()) await this.run()
  }

  /** Why this session has to end; undefined: it may go on. */
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
    // what people are comes first: it is asked of each once, and their targets take a query each
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

/** Looks whether sessions may still have their targets. Asks for each user and target once: one is for one look. */
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
