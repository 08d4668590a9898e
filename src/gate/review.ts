/**
 * Whether what runs may go on: asked anew after every change of what it stands on, and once in a while, for time
 * passes too and another process may write to the store. Whoever is disabled, whoever lost the right, and whose
 * password, key or certificate is no longer theirs is out.
 */
import { setImmediate as aside } from 'node:timers/promises'
import { type Target, targetsOf } from '../access/targets.ts'
import { type Basis, flawOfKey, Grounds, type GroundsOptions, keyOf } from '../identity/basis.ts'
import type { Store } from '../store/store.ts'
import type { RunningSession, RunningSessions } from './running.ts'

/** Milliseconds between reviews of everything when nothing is known to have changed. */
export const REVIEW_INTERVAL_MS = 5000
/** Milliseconds between looks whether something has changed that only time or another process can change. */
export const LOOK_INTERVAL_MS = 1000
/** Milliseconds that a review goes on before others have their turn. */
const SLICE_MS = 2

export interface ReviewOptions extends GroundsOptions {
  store: GroundsOptions['store'] & Pick<Store, 'access' | 'dataVersion'>
  running: RunningSessions
  /** Ends the session; it may have been told before. */
  stop: (session: RunningSession, reason: string) => Promise<void>
  /** Reviews what else rests on sign-ins, after the sessions. */
  others: (grounds: Grounds) => Promise<void>
  /** All that rests on a sign-in, the sessions too. */
  bases: () => Iterable<Basis>
}

export class Review {
  readonly #options: ReviewOptions
  #current: Promise<void> | undefined
  #next: Promise<void> | undefined
  #version: number | undefined
  /** When the first of the users and API keys expires that were looked at since the last round began. */
  #due = Number.POSITIVE_INFINITY

  constructor(options: ReviewOptions) {
    this.#options = options
  }

  /**
   * Resolves when all that runs now was asked, after what has been written until now. Many who ask at once are served
   * by one round.
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
      (await flawOfTarget(this.#options.store, session))
    )
  }

  async #round(): Promise<void> {
    const { running, stop, others } = this.#options
    this.#due = Number.POSITIVE_INFINITY
    const grounds = this.grounds()
    let failure: unknown
    let since = performance.now()
    for (const session of [...running]) {
      if (performance.now() - since > SLICE_MS) {
        await aside()
        since = performance.now()
      }
      const reason = await this.flawOf(session, grounds)
      if (reason === undefined || !running.find(session.id)) continue
      await stop(session, reason).catch((error: unknown) => {
        failure = error
      })
    }
    await others(grounds).catch((error: unknown) => {
      failure = error
    })
    if (failure !== undefined) throw failure
  }
}

async function flawOfTarget(
  { access }: Pick<Store, 'access'>,
  { userId, target, isRecorded }: RunningSession,
): Promise<string | undefined> {
  const { kind, accountId, serviceId, protocol } = target
  const rows = await access.sessionTargets(userId, { accountId, serviceId })
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
