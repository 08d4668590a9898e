/**
 * One change or check of a secret, from wherever an earlier attempt has left it. The new secret is stored before the target is
 * touched, proved by signing in, and only then made the stored one. It is removed only if the target was never asked for it, or
 * has refused it: a change without an answer may be made later, so the same one is asked for again. So after a crash at any
 * instant the valid one of the two is found.
 */
import type { Audit } from '../audit/events/catalogue.ts'
import type { EventFields } from '../audit/events/fields.ts'
import type { NewSecret, SecretChange, SignIn } from '../contract/change.ts'
import type { Id } from '../model/objects.ts'
import type { ChangeOutcome, SecretJob } from '../model/password-change.ts'
import { Secret } from '../model/secret.ts'
import { ChangedError } from '../store/engine/errors.ts'
import type { Leaving, Store } from '../store/store.ts'
import { type Credential, wipe } from '../vault/credentials.ts'
import { publicLine } from '../vault/formats/generated.ts'
import type { Vault } from '../vault/vault.ts'
import type { Changer } from './changer.ts'
import { Failure, failureOf, OF_ACCOUNT, PASSING, UNTOUCHED } from './failure.ts'
import { newSecret, wrongSecret } from './keys.ts'
import { type ChangePlace, placeOf, signInOf } from './place.ts'

/** Milliseconds for which a step has its job to itself; longer than a changer may take for one. */
export const LEASE_MS = 180_000
const MAX_ATTEMPTS = 12
const FIRST_PAUSE_MS = 30_000
const LONGEST_PAUSE_MS = 3_600_000
/** Milliseconds after which an account that a session locks is looked at again, if its end should be missed. */
const LOCKED_PAUSE_MS = 10_000
export interface MachineOptions {
  store: Store
  vault: Pick<Vault, 'credentials' | 'sealCredential' | 'openCredential'>
  audit: Pick<Audit, 'record'>
  changer: Changer
  /**
   * Holds an account that its policy locks for a change; returns a function that releases it, or undefined if a session
   * has it.
   */
  hold: (accountId: Id) => Promise<(() => void) | undefined>
  /** Called around the promotion of a secret: no checkout of the old one may go on. */
  onChanged: (accountId: Id, user: string) => Promise<void>
  now: () => number
}

export class Machine {
  readonly #options: MachineOptions

  constructor(options: MachineOptions) {
    this.#options = options
  }

  /** Does the job, which the caller has claimed, as far as it goes now. Rejects if the store or the audit log fails. */
  async run(job: SecretJob): Promise<void> {
    const { store } = this.#options
    const place = await placeOf(store, job.accountId)
    const run = new Run(this.#options, job)
    try {
      if (typeof place === 'string') await run.giveUp('failed', new Failure('not_configured', place))
      else await run.work(place)
    } catch (error) {
      // Another runner has it, or an administrator has set a secret: the next attempt finds out.
      if (!(error instanceof ChangedError)) throw error
      await run.again(new Failure('changed_meanwhile', 'the account was changed meanwhile'), { pause: 1_000 })
    } finally {
      run.wipe()
    }
  }
}

/** One attempt at one job. */
class Run {
  readonly #options: MachineOptions
  readonly #job: SecretJob
  #lease: number
  #fields: EventFields = {}
  #secrets: Credential[] = []
  /** Whether the next secret is stored. */
  #isBegun: boolean
  /** Whether the target may have the next secret, or get it later. */
  #isTouched = true
  /** Whether the target has refused a wrong secret in this attempt. */
  #isProbed = false
  #isAnnounced = false
  /** Whether the stored secret was valid before the target was touched, if that is known. */
  #isValid: boolean | undefined

  constructor(options: MachineOptions, job: SecretJob) {
    this.#options = options
    this.#job = job
    this.#lease = job.lease
    this.#isBegun = job.step === 'begun'
  }

  async work(place: ChangePlace): Promise<void> {
    const { vault } = this.#options
    const { account, domain, device } = place
    const { type, cause, user } = this.#job
    this.#fields = {
      ...(user !== '' && { user }),
      method: cause,
      object_type: 'account',
      object: [account.accountName, domain.domainName, device?.deviceName ?? []].flat().join('@'),
      account: account.accountName,
      domain: domain.domainName,
      ...(device && { device: device.deviceName }),
    }
    const stored = this.#keep(await vault.credentials(account.id))
    if (!place.kind.credentials.includes(type))
      return this.giveUp('failed', new Failure('unsupported', `${domain.change?.plugin} changes no ${type}`))
    if (!stored.some((one) => one.type === type))
      return this.giveUp('failed', new Failure('no_secret', `no ${type} is stored for the account`))
    if (this.#job.kind === 'check') return this.#check(place, stored)
    const release = this.#job.isForced ? () => undefined : await this.#options.hold(account.id)
    if (!release)
      return this.again(new Failure('in_use', 'a session uses the account'), {
        pause: LOCKED_PAUSE_MS,
        isWaiting: true,
      })
    try {
      await this.#change(place, stored)
    } finally {
      release()
    }
  }

  async #check(place: ChangePlace, stored: readonly Credential[]): Promise<void> {
    const left = await this.#left(place)
    const as = signInOf(place.account, stored, this.#job.type)
    let found: Found
    try {
      if (left.next || left.doubtful) found = await this.#find(place, stored, left)
      else found = as && (await this.#verify(place, as)) === 'valid' ? 'stored' : 'neither'
    } catch (error) {
      return this.#later(failureOf(error))
    }
    switch (found) {
      case 'next':
        return this.#promote(place, stored, left.next!)
      case 'doubtful':
        return this.#promote(place, stored, left.doubtful!)
      case 'any':
        return this.#failed(lenient())
      case 'stored':
        // A change that was asked for may still be made: the next secret stays.
        return this.#end('valid', {
          isOldProved: true,
          ...(!left.next && { state: 'ok' }),
          code: '',
          message: '',
        })
      case 'neither':
        return this.#mismatch(left.next !== undefined)
    }
  }

  async #mismatch(isUnknown: boolean): Promise<void> {
    const message = 'the target refuses the stored secret'
    await this.#tellMismatch(message)
    await this.#end('mismatch', {
      isOldProved: false,
      state: isUnknown ? 'unknown' : 'mismatch',
      code: 'refused_sign_in',
      message,
    })
  }

  /** Returns what earlier changes, of this job or other ones, have left: the target may have one of them. */
  async #left({ account }: ChangePlace): Promise<Left & { wanted?: Credential }> {
    const { store, vault } = this.#options
    const { type } = this.#job
    const sealed = await store.secretJobs.pending(account.id, type)
    const opened = (['next', 'doubtful', 'wanted'] as const).flatMap((role) => {
      const one = sealed[role]
      return one ? [[role, this.#keepOne(vault.openCredential(account.id, type, one, role))] as const] : []
    })
    return Object.fromEntries(opened)
  }

  async #change(place: ChangePlace, stored: readonly Credential[]): Promise<void> {
    const { store, vault, now } = this.#options
    const { account } = place
    const { wanted, ...left } = await this.#left(place)
    if (left.next) {
      this.#isBegun = true
      return this.#resolve(place, stored, { ...left, next: left.next }, { isFresh: false })
    }
    this.#isTouched = false
    let next: Credential
    try {
      next = wanted ?? this.#keepOne(credentialOf(await newSecret(this.#job.type, place.policy, place.kind)))
    } catch (error) {
      return this.giveUp('failed', new Failure('unsupported', (error as Error).message))
    }
    const unfit = await this.#unfit(place, stored)
    if (unfit?.code === 'mismatch') {
      await this.#record('secret.change', { result: 'failure', reason: unfit.text })
      return this.#mismatch(false)
    }
    if (unfit) return this.#later(unfit)
    await this.#renew()
    const sealed = vault.sealCredential(account.id, next, 'next')
    const begun = await store.secretJobs.begin(this.#job.id, this.#lease, now(), sealed)
    if (!begun.isBegun) return
    this.#isBegun = true
    await this.#resolve(place, stored, { ...left, next }, { isFresh: true })
  }

  /** Finds out, before the target is touched, whether a change could be proved there. Returns why it could not. */
  async #unfit(place: ChangePlace, stored: readonly Credential[]): Promise<Failure | undefined> {
    const as = signInOf(place.account, stored, this.#job.type)
    try {
      if (await this.#takesAny(place, stored)) return lenient()
      this.#isValid = as && (await this.#verify(place, as)) === 'valid'
      // Without one the account itself could make no change.
      if (this.#isValid === false && !place.administrator)
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
    stored: readonly Credential[],
    left: Left & { next: Credential },
    { isFresh }: { isFresh: boolean },
  ): Promise<void> {
    const { next } = left
    let failure: Failure | undefined
    let found: Found
    try {
      if (isFresh) failure = await this.#set(place, stored, next)
      found = await this.#find(place, stored, left)
      if (found === 'stored' && !isFresh) {
        failure = await this.#set(place, stored, next)
        found = await this.#find(place, stored, left)
      }
      if (found === 'neither' && place.administrator) {
        failure = await this.#setByAdministrator(place, stored, next)
        found = await this.#find(place, stored, left)
      }
    } catch (error) {
      const thrown = failureOf(error)
      return this.#isTouched
        ? this.#later(failure ?? thrown)
        : this.#failed(failure ?? thrown, { left: 'removed' })
    }
    switch (found) {
      case 'next':
        return this.#promote(place, stored, next, failure)
      case 'doubtful':
        return this.#promote(place, stored, left.doubtful!, failure)
      case 'stored':
        return this.#keepStored(place, left, failure)
      case 'neither':
        return this.#giveUpUnknown(
          failure ?? new Failure('refused_sign_in', 'the target refuses both secrets'),
        )
      case 'any':
        return this.#isTouched ? this.#giveUpUnknown(lenient()) : this.#failed(lenient(), { left: 'removed' })
    }
  }

  /** The target has the stored secret: the change has failed, or is not made yet. */
  async #keepStored(
    { account }: ChangePlace,
    { next, doubtful }: Left & { next: Credential },
    failure: Failure | undefined,
  ): Promise<void> {
    if (failure && !this.#isTouched) return this.#failed(failure, { left: 'removed', isOldProved: true })
    const why = failure ?? new Failure('unclear', 'the target has said that it made the change, and has not')
    const isLast = this.#job.attempts >= MAX_ATTEMPTS
    if (why.code === 'refused_password' && !doubtful) {
      // It may be refused because it is set already, by a change that shows later: another one is made, and this one is kept.
      const doubted = this.#options.vault.sealCredential(account.id, next, 'doubtful')
      return isLast
        ? this.#failed(why, { left: doubted, isOldProved: true })
        : this.again(why, { pause: 0, left: doubted })
    }
    if (!isLast && PASSING.includes(why.code)) return this.again(why)
    return this.#failed(why, { isOldProved: true })
  }

  /** Changes the secret at the target, by the account or its administrator. Returns why that was refused. */
  async #set(
    place: ChangePlace,
    stored: readonly Credential[],
    next: Credential,
  ): Promise<Failure | undefined> {
    const account = signInOf(place.account, stored, this.#job.type)
    if (!account) return this.#setByAdministrator(place, stored, next)
    const failure = await this.#ask(place, {
      account,
      by: account,
      isAdministrator: false,
      next: newOf(next),
    })
    if (!failure || !place.administrator || !OF_ACCOUNT.includes(failure.code)) return failure
    return this.#setByAdministrator(place, stored, next)
  }

  async #setByAdministrator(
    place: ChangePlace,
    stored: readonly Credential[],
    next: Credential,
  ): Promise<Failure | undefined> {
    const { administrator } = place
    if (!administrator) return new Failure('unsupported', 'the account has no secret to sign in with')
    const theirs = this.#keep(await this.#options.vault.credentials(administrator.id))
    const by = signInOf(administrator, theirs, 'password') ?? signInOf(administrator, theirs, 'ssh_key')
    if (!by) return new Failure('unsupported', 'no secret is stored for the administrator account')
    const account = signInOf(place.account, stored, this.#job.type) ?? {
      login: place.account.accountLogin,
      secret: { type: 'password', password: '' },
    }
    return this.#ask(place, { account, by, isAdministrator: true, next: newOf(next) })
  }

  async #ask(place: ChangePlace, change: SecretChange): Promise<Failure | undefined> {
    if (!this.#isAnnounced) await this.#record('secret.begin', {})
    this.#isAnnounced = true
    await this.#renew()
    try {
      await this.#options.changer.change(place.plugin, place.target, change)
      this.#isTouched = true
      return undefined
    } catch (error) {
      const failure = failureOf(error)
      if (!UNTOUCHED.includes(failure.code)) this.#isTouched = true
      return failure
    }
  }

  /** Finds out which secret the target has. @throws ChangerError if that cannot be known now */
  async #find(place: ChangePlace, stored: readonly Credential[], left: Left): Promise<Found> {
    const isValid = async (as: SignIn | undefined) =>
      as !== undefined && (await this.#verify(place, as)) === 'valid'
    // Begins with a wrong one: a right one after it ends the count of failures that some targets keep.
    if (await this.#takesAny(place, stored)) return 'any'
    if (left.next && (await isValid(this.#signInBy(place, stored, left.next)))) return 'next'
    if (await isValid(signInOf(place.account, stored, this.#job.type))) return 'stored'
    if (left.doubtful && (await isValid(this.#signInBy(place, stored, left.doubtful)))) return 'doubtful'
    return 'neither'
  }

  /** Whether the target lets the account in with a secret that it cannot have. Asked once in an attempt. */
  async #takesAny(place: ChangePlace, stored: readonly Credential[]): Promise<boolean> {
    if (this.#isProbed) return false
    const wrong = this.#keepOne(credentialOf(await wrongSecret(this.#job.type)))
    const as = this.#signInBy(place, stored, wrong)
    if (as && (await this.#verify(place, as)) === 'valid') return true
    this.#isProbed = true
    return false
  }

  /** Returns how the account signs in with another secret of the job's type. */
  #signInBy(place: ChangePlace, stored: readonly Credential[], one: Credential): SignIn | undefined {
    const { type } = this.#job
    return signInOf(place.account, [...stored.filter((other) => other.type !== type), one], type)
  }

  async #verify(place: ChangePlace, as: SignIn) {
    await this.#renew()
    return await this.#options.changer.verify(place.plugin, place.target, as)
  }

  /** Makes the next secret the stored one. */
  async #promote(
    place: ChangePlace,
    stored: readonly Credential[],
    next: Credential,
    failure?: Failure,
  ): Promise<void> {
    const { store, vault, now, onChanged } = this.#options
    const { account } = place
    const old = stored.find((one) => one.type === next.type)!
    const notRetired = await this.#retire(place, stored, next)
    await this.#renew()
    const retired = notRetired && `the old key is still valid at the target: ${notRetired.message}`
    const reason = [failure?.text ?? [], retired ?? []].flat().join('; ')
    await this.#record('secret.change', { result: 'success', ...(reason !== '' && { reason }) })
    // Before the end of the job is stored, so that a crash forgets none; and after it those that have begun meanwhile.
    await onChanged(account.id, this.#job.user)
    await store.secretJobs.promote(this.#job.id, this.#lease, {
      now: now(),
      sealed: vault.sealCredential(account.id, next),
      previous: vault.sealCredential(account.id, old, 'previous'),
      revision: account.secretRevision ?? 0,
      code: failure?.code ?? notRetired?.code ?? '',
      message: failure?.message ?? retired ?? '',
    })
    await onChanged(account.id, this.#job.user)
  }

  /** Withdraws an old key, which is valid beside the new one. Returns why it could not be. */
  async #retire(
    place: ChangePlace,
    stored: readonly Credential[],
    next: Credential,
  ): Promise<Failure | undefined> {
    const old = signInOf(place.account, stored, this.#job.type)
    const account = signInOf(place.account, [next], this.#job.type)
    if (this.#job.type !== 'ssh_key' || !old || !account) return undefined
    try {
      await this.#renew()
      const retired = { account, by: account, isAdministrator: false, old: old.secret }
      await this.#options.changer.retire(place.plugin, place.target, retired)
      return undefined
    } catch (error) {
      return failureOf(error)
    }
  }

  /** Tries again after a failure that says nothing about the secrets, or gives up. */
  async #later(failure: Failure): Promise<void> {
    if (this.#job.attempts < MAX_ATTEMPTS && PASSING.includes(failure.code)) return this.again(failure)
    return this.#isBegun ? this.#giveUpUnknown(failure) : this.#failed(failure)
  }

  /** Ends the job without a new secret. The next secret stays unless `left` is given, and with it the doubt. */
  async #failed(
    failure: Failure,
    { left, isOldProved = false }: { left?: Leaving; isOldProved?: boolean } = {},
  ): Promise<void> {
    if (this.#job.kind === 'change')
      await this.#record('secret.change', { result: 'failure', reason: failure.text })
    const { code, message } = failure
    const known = isOldProved || this.#isValid !== false ? 'ok' : 'mismatch'
    await this.#end('failed', {
      isOldProved,
      ...(left && { left, state: known }),
      ...(this.#isBegun && !left && { state: 'unknown' }),
      code,
      message,
    })
  }

  /** Keeps both secrets, since neither could be proved. */
  async #giveUpUnknown(failure: Failure): Promise<void> {
    await this.#record('secret.change', { result: 'failure', reason: failure.text })
    await this.#tellMismatch(`neither secret could be proved, and both are kept: ${failure.message}`)
    const { code, message } = failure
    await this.#end('unknown', { isOldProved: false, state: 'unknown', code, message })
  }

  async giveUp(outcome: ChangeOutcome, failure: Failure): Promise<void> {
    if (this.#isBegun) return this.#giveUpUnknown(failure)
    if (outcome === 'failed') return this.#failed(failure)
    await this.#end(outcome, { isOldProved: false, code: failure.code, message: failure.message })
  }

  /** Releases the job until later: by default after a pause that grows. A job that only waits counts no attempt. */
  async again(
    failure: Failure,
    { pause, isWaiting = false, left }: { pause?: number; isWaiting?: boolean; left?: Leaving } = {},
  ): Promise<void> {
    const { store, now } = this.#options
    const { attempts, id } = this.#job
    const grown = Math.min(FIRST_PAUSE_MS * 2 ** attempts, LONGEST_PAUSE_MS)
    try {
      await store.secretJobs.retry(id, this.#lease, {
        due: now() + (pause ?? grown),
        attempts: isWaiting ? attempts : attempts + 1,
        ...(left && { left }),
        code: failure.code,
        message: failure.message,
      })
    } catch (error) {
      if (!(error instanceof ChangedError)) throw error
    }
  }

  #end(
    outcome: ChangeOutcome,
    more: {
      isOldProved: boolean
      left?: Leaving
      state?: 'ok' | 'mismatch' | 'unknown'
      code: string
      message: string
    },
  ): Promise<void> {
    const { store, now } = this.#options
    return store.secretJobs.giveUp(this.#job.id, this.#lease, { now: now(), outcome, ...more })
  }

  async #renew(): Promise<void> {
    const lease = this.#options.now() + LEASE_MS
    if (lease === this.#lease) return
    await this.#options.store.secretJobs.renew(this.#job.id, this.#lease, lease)
    this.#lease = lease
  }

  async #record(code: 'secret.begin' | 'secret.change', fields: EventFields): Promise<void> {
    await this.#options.audit.record(code, { ...this.#fields, ...fields })
  }

  async #tellMismatch(reason: string): Promise<void> {
    await this.#options.audit.record('secret.mismatch', { ...this.#fields, reason })
  }

  #keep(credentials: Credential[]): Credential[] {
    this.#secrets.push(...credentials)
    return credentials
  }

  #keepOne(credential: Credential): Credential {
    this.#secrets.push(credential)
    return credential
  }

  wipe(): void {
    for (const secret of this.#secrets) wipe(secret)
  }
}

type Found = 'next' | 'stored' | 'doubtful' | 'neither' | 'any'

/** Secrets beside the stored one that the target may have. `doubtful`: one that it has refused after a change without an answer. */
interface Left {
  next?: Credential
  doubtful?: Credential
}

const lenient = () =>
  new Failure('accepts_any', 'the target lets the account in with any secret: nothing can be proved')

function credentialOf(secret: NewSecret): Credential {
  return secret.type === 'ssh_key'
    ? { type: 'ssh_key', privateKey: Secret.of(secret.privateKey) }
    : { type: secret.type, password: Secret.of(secret.password) }
}

function newOf(credential: Credential): NewSecret {
  if (credential.type !== 'ssh_key')
    return { type: credential.type, password: credential.password.revealText() }
  const privateKey = credential.privateKey.revealText()
  return {
    type: 'ssh_key',
    privateKey,
    publicKey: publicLine(privateKey, credential.passphrase?.revealText()),
  }
}
