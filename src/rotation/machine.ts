/**
 * One change or check of a secret, from wherever an earlier attempt has left it. The new secret is stored before the target is
 * touched, proved by signing in, and only then made the stored one. It is removed only if the target was never asked for it, or
 * has refused it: a change without an answer may be made later, so the same one is asked for again. So after a crash at any
 * instant the valid one of the two is found.
 */
import type { SecretJob } from '../model/password-change.ts'
import { ChangedError } from '../store/engine/errors.ts'
import type { Leaving } from '../store/store.ts'
import type { Credential } from '../vault/credentials.ts'
import { AtTarget, credentialOf, type Found, type Left } from './at-target.ts'
import { Attempt, MAX_ATTEMPTS, type MachineOptions } from './attempt.ts'
import { Failure, failureOf, PASSING } from './failure.ts'
import { newSecret } from './keys.ts'
import { type ChangePlace, placeOf } from './place.ts'

/** Milliseconds after which an account that a session locks is looked at again, if its end should be missed. */
const LOCKED_PAUSE_MS = 300_000

export class Machine {
  readonly #options: MachineOptions

  constructor(options: MachineOptions) {
    this.#options = options
  }

  /** Does the job, which the caller has claimed, as far as it goes now. Rejects if the store or the audit log fails. */
  async run(job: SecretJob): Promise<void> {
    const { placed, place } = await placeOf(this.#options.store, job.accountId)
    const attempt = new Attempt(this.#options, job, placed)
    try {
      if (typeof place === 'string') await new Run(attempt).giveUp(new Failure('not_configured', place))
      else await new Run(attempt).work(place)
    } catch (error) {
      // Another runner has it, or an administrator has set a secret: the next attempt finds out.
      if (!(error instanceof ChangedError)) throw error
      const failure = new Failure('changed_meanwhile', 'the account was changed meanwhile')
      await attempt.again(failure, { pause: 1_000 })
    } finally {
      attempt.wipe()
    }
  }
}

/** The decisions of one attempt. */
class Run {
  readonly #attempt: Attempt
  readonly #job: SecretJob
  /** Whether the next secret is stored. */
  #isBegun: boolean
  /** Whether the stored secret was valid before the target was touched, if that is known. */
  #isValid: boolean | undefined

  constructor(attempt: Attempt) {
    this.#attempt = attempt
    this.#job = attempt.job
    this.#isBegun = attempt.job.step === 'begun'
  }

  async work(place: ChangePlace): Promise<void> {
    const { vault, hold } = this.#attempt.options
    const { account, domain } = place
    const { type } = this.#job
    const stored = this.#attempt.keep(await vault.credentials(account.id))
    if (!place.kind.credentials.includes(type))
      return this.giveUp(new Failure('unsupported', `${domain.change?.plugin} changes no ${type}`))
    const old = stored.find((one) => one.type === type)
    if (!old) return this.giveUp(new Failure('no_secret', `no ${type} is stored for the account`))
    const target = new AtTarget(this.#attempt, place, stored)
    if (this.#job.kind === 'check') return this.#check(place, target, old)
    const release = this.#job.isForced ? () => undefined : await hold(account.id)
    if (!release)
      return this.#attempt.again(new Failure('in_use', 'a session uses the account'), {
        pause: LOCKED_PAUSE_MS,
        isWaiting: true,
      })
    try {
      await this.#change(place, target, old)
    } finally {
      release()
    }
  }

  async #check(place: ChangePlace, target: AtTarget, old: Credential): Promise<void> {
    const left = await this.#left(place)
    let found: Found
    try {
      if (left.next || left.doubtful) found = await target.find(left)
      else found = (await target.hasStored()) ? 'stored' : 'neither'
    } catch (error) {
      return this.#later(failureOf(error))
    }
    switch (found) {
      case 'next':
        return this.#promote(place, target, old, left.next!)
      case 'doubtful':
        return this.#promote(place, target, old, left.doubtful!)
      case 'any':
        return this.#failed(lenient())
      case 'stored':
        // A change that was asked for may still be made: the next secret stays.
        return this.#attempt.end('valid', {
          isOldProved: true,
          ...(!left.next && { state: 'ok' }),
          code: '',
          message: '',
        })
      case 'neither':
        if (place.policy.isReconciled && place.administrator && !place.account.isKept)
          await this.#askForChange()
        return this.#mismatch(left.next !== undefined)
    }
  }

  /** Asks for a change of a secret that the target refuses, which only the administrator can make. */
  async #askForChange(): Promise<void> {
    const { store, now } = this.#attempt.options
    const { accountId, type } = this.#job
    const time = now()
    await store.secretJobs.add({
      ...{ accountId, type, kind: 'change', cause: 'mismatch', user: '', isForced: false },
      ...{ due: time, created: time },
    })
  }

  async #mismatch(isUnknown: boolean): Promise<void> {
    const message = 'the target refuses the stored secret'
    await this.#attempt.recordMismatch(message)
    await this.#attempt.end('mismatch', {
      isOldProved: false,
      state: isUnknown ? 'unknown' : 'mismatch',
      code: 'refused_sign_in',
      message,
    })
  }

  /** Returns what earlier changes, of this job or other ones, have left: the target may have one of them. */
  async #left({ account }: ChangePlace): Promise<Left & { wanted?: Credential }> {
    const { store, vault } = this.#attempt.options
    const { type } = this.#job
    const sealed = await store.secretJobs.pending(account.id, type)
    const opened = (['next', 'doubtful', 'wanted'] as const).flatMap((role) => {
      const one = sealed[role]
      return one
        ? [[role, this.#attempt.keepOne(vault.openCredential(account.id, type, one, role))] as const]
        : []
    })
    return Object.fromEntries(opened)
  }

  async #change(place: ChangePlace, target: AtTarget, old: Credential): Promise<void> {
    const { store, vault, now } = this.#attempt.options
    const { account } = place
    const { wanted, ...left } = await this.#left(place)
    if (left.next) {
      this.#isBegun = true
      return this.#resolve(place, target, old, { ...left, next: left.next }, { isFresh: false })
    }
    target.isTouched = false
    let next: Credential
    try {
      const made = () => newSecret(this.#job.type, place.policy, place.kind)
      next = wanted ?? this.#attempt.keepOne(credentialOf(await made()))
    } catch (error) {
      return this.giveUp(new Failure('unsupported', (error as Error).message))
    }
    const unfit = await this.#unfit(place, target)
    if (unfit?.code === 'mismatch') {
      await this.#attempt.record('secret.change', { result: 'failure', reason: unfit.text })
      return this.#mismatch(false)
    }
    if (unfit) return this.#later(unfit)
    await this.#attempt.renew()
    const sealed = vault.sealCredential(account.id, next, 'next')
    const begun = await store.secretJobs.begin(this.#job.id, this.#attempt.lease, now(), sealed)
    if (!begun.isBegun) return
    this.#isBegun = true
    await this.#resolve(place, target, old, { ...left, next }, { isFresh: true })
  }

  /** Finds out, before the target is touched, whether a change could be proved there. Returns why it could not. */
  async #unfit(place: ChangePlace, target: AtTarget): Promise<Failure | undefined> {
    try {
      if (await target.takesAny()) return lenient()
      this.#isValid = await target.hasStored()
      // Without one the account itself could make no change.
      if (!this.#isValid && !place.administrator)
        return new Failure('mismatch', 'the target refuses the stored secret')
      return undefined
    } catch (error) {
      return failureOf(error)
    }
  }

  /**
   * Brings the target and the store together. `isFresh`: the target was not asked for the next secret yet; otherwise it is
   * asked for the same one again, unless it has it. It is set by the administrator if the target has neither.
   */
  async #resolve(
    place: ChangePlace,
    target: AtTarget,
    old: Credential,
    left: Left & { next: Credential },
    { isFresh }: { isFresh: boolean },
  ): Promise<void> {
    const { next } = left
    let failure: Failure | undefined
    let found: Found
    try {
      if (isFresh) failure = await target.set(next)
      found = await target.find(left)
      if (found === 'stored' && !isFresh) {
        failure = await target.set(next)
        found = await target.find(left)
      }
      if (found === 'neither' && place.administrator) {
        failure = await target.setByAdministrator(next)
        found = await target.find(left)
      }
    } catch (error) {
      const thrown = failureOf(error)
      return target.isTouched
        ? this.#later(failure ?? thrown)
        : this.#failed(failure ?? thrown, { left: 'removed' })
    }
    switch (found) {
      case 'next':
        return this.#promote(place, target, old, next, failure)
      case 'doubtful':
        return this.#promote(place, target, old, left.doubtful!, failure)
      case 'stored':
        return this.#keepStored(place, target, left, failure)
      case 'neither':
        return this.#giveUpUnknown(
          failure ?? new Failure('refused_sign_in', 'the target refuses both secrets'),
        )
      case 'any':
        return target.isTouched
          ? this.#giveUpUnknown(lenient())
          : this.#failed(lenient(), { left: 'removed' })
    }
  }

  /** The target has the stored secret: the change has failed, or is not made yet. */
  async #keepStored(
    { account }: ChangePlace,
    { isTouched }: AtTarget,
    { next, doubtful }: Left & { next: Credential },
    failure: Failure | undefined,
  ): Promise<void> {
    if (failure && !isTouched) return this.#failed(failure, { left: 'removed', isOldProved: true })
    const why = failure ?? new Failure('unclear', 'the target has said that it made the change, and has not')
    const isLast = this.#job.attempts >= MAX_ATTEMPTS
    if (why.code === 'refused_password' && !doubtful) {
      // It may be refused because it is set already, by a change that shows later: another one is made, and this one is kept.
      const doubted = this.#attempt.options.vault.sealCredential(account.id, next, 'doubtful')
      return isLast
        ? this.#failed(why, { left: doubted, isOldProved: true })
        : this.#attempt.again(why, { pause: 0, left: doubted })
    }
    if (!isLast && PASSING.includes(why.code)) return this.#attempt.again(why)
    return this.#failed(why, { isOldProved: true })
  }

  /** Makes the next secret the stored one. */
  async #promote(
    { account }: ChangePlace,
    target: AtTarget,
    old: Credential,
    next: Credential,
    failure?: Failure,
  ): Promise<void> {
    const { store, vault, now, onChanged } = this.#attempt.options
    const notRetired = await target.retire(next)
    await this.#attempt.renew()
    const retired = notRetired && `the old key is still valid at the target: ${notRetired.message}`
    const reason = [failure?.text ?? [], retired ?? []].flat().join('; ')
    await this.#attempt.record('secret.change', { result: 'success', ...(reason !== '' && { reason }) })
    // Before the end of the job is stored, so that a crash forgets none.
    await onChanged(account.id, this.#job.user)
    await store.secretJobs.promote(this.#job.id, this.#attempt.lease, {
      now: now(),
      sealed: vault.sealCredential(account.id, next),
      previous: vault.sealCredential(account.id, old, 'previous'),
      revision: account.secretRevision ?? 0,
      code: failure?.code ?? notRetired?.code ?? '',
      message: failure?.message ?? retired ?? '',
    })
    // A check holds no hand-out up: one may have read the old secret since.
    if (this.#job.kind === 'check') await onChanged(account.id, this.#job.user)
  }

  /** Tries again after a failure that says nothing about the secrets, or gives up. */
  async #later(failure: Failure): Promise<void> {
    if (this.#job.attempts < MAX_ATTEMPTS && PASSING.includes(failure.code))
      return this.#attempt.again(failure)
    return this.#isBegun ? this.#giveUpUnknown(failure) : this.#failed(failure)
  }

  /** Ends the job without a new secret. The next secret stays unless `left` is given, and with it the doubt. */
  async #failed(
    failure: Failure,
    { left, isOldProved = false }: { left?: Leaving; isOldProved?: boolean } = {},
  ): Promise<void> {
    if (this.#job.kind === 'change')
      await this.#attempt.record('secret.change', { result: 'failure', reason: failure.text })
    const { code, message } = failure
    const known = isOldProved || this.#isValid !== false ? 'ok' : 'mismatch'
    await this.#attempt.end('failed', {
      isOldProved,
      ...(left && { left, state: known }),
      ...(this.#isBegun && !left && { state: 'unknown' }),
      code,
      message,
    })
  }

  /** Keeps both secrets, since neither could be proved. */
  async #giveUpUnknown(failure: Failure): Promise<void> {
    await this.#attempt.record('secret.change', { result: 'failure', reason: failure.text })
    await this.#attempt.recordMismatch(
      `neither secret could be proved, and both are kept: ${failure.message}`,
    )
    const { code, message } = failure
    await this.#attempt.end('unknown', { isOldProved: false, state: 'unknown', code, message })
  }

  async giveUp(failure: Failure): Promise<void> {
    return this.#isBegun ? this.#giveUpUnknown(failure) : this.#failed(failure)
  }
}

const lenient = () =>
  new Failure('accepts_any', 'the target lets the account in with any secret: nothing can be proved')
