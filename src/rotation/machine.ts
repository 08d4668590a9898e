/**
 * One change or check of a secret, from wherever an earlier attempt has left it. The new secret is stored before the target is
 * touched, proved by signing in, and only then made the stored one; it is removed only if the old one was proved. So after a
 * crash at any instant the valid one of the two is found.
 */
import type { Audit } from '../audit/events/catalogue.ts'
import type { EventFields } from '../audit/events/fields.ts'
import type { NewSecret, SecretChange, SignIn } from '../contract/change.ts'
import type { Id } from '../model/objects.ts'
import type { ChangeOutcome, SecretJob } from '../model/password-change.ts'
import { Secret } from '../model/secret.ts'
import { ChangedError } from '../store/engine/errors.ts'
import type { Store } from '../store/store.ts'
import { type Credential, wipe } from '../vault/credentials.ts'
import { publicLine } from '../vault/formats/generated.ts'
import type { Vault } from '../vault/vault.ts'
import { type Changer, ChangerError } from './changer.ts'
import { newSecret, wrongSecret } from './keys.ts'
import { type ChangePlace, placeOf, signInOf } from './place.ts'

/** Milliseconds for which a step has its job to itself; longer than a changer may take for one. */
export const LEASE_MS = 180_000
const MAX_ATTEMPTS = 12
const FIRST_PAUSE_MS = 30_000
const LONGEST_PAUSE_MS = 3_600_000
/** Milliseconds after which an account that a session locks is looked at again, if its end should be missed. */
const LOCKED_PAUSE_MS = 10_000
/** Failures after which another attempt may succeed. */
const PASSING: readonly string[] = ['unreachable', 'timeout', 'unclear']
/** Failures of an account that an administrator need not have. */
const OF_ACCOUNT: readonly string[] = ['refused_sign_in', 'not_permitted', 'unsupported', 'unexpected_answer']

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
  /** Called when a secret was changed: no checkout of the old one may go on. */
  onChanged: (accountId: Id, user: string) => Promise<void>
  now: () => number
}

/** Why a job ends, or is tried again, without a new secret. */
class Failure extends Error {
  readonly code: string
  readonly until: number | undefined

  constructor(code: string, message: string, until?: number) {
    super(message)
    this.code = code
    this.until = until
  }
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
      await run.again(new Failure('changed_meanwhile', 'the account was changed meanwhile'), 1_000)
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
  #isBegun: boolean

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
      return this.again(new Failure('in_use', 'a session uses the account'), LOCKED_PAUSE_MS, {
        isWaiting: true,
      })
    try {
      await this.#change(place, stored)
    } finally {
      release()
    }
  }

  async #check(place: ChangePlace, stored: readonly Credential[]): Promise<void> {
    const { store } = this.#options
    const as = signInOf(place.account, stored, this.#job.type)
    const pending = await store.secretJobs.pending(place.account.id, this.#job.type)
    try {
      if (as && (await this.#verify(place, as)) === 'valid') {
        // A secret that a change has left behind is known to be none now.
        await this.#end('valid', { isOldProved: true, state: 'ok', code: '', message: '' })
        return
      }
    } catch (error) {
      return this.#later(failureOf(error))
    }
    await this.#tellMismatch('the target refuses the stored secret')
    await this.#end('mismatch', {
      isOldProved: false,
      state: pending.next ? 'unknown' : 'mismatch',
      code: 'refused_sign_in',
      message: 'the target refuses the stored secret',
    })
  }

  async #change(place: ChangePlace, stored: readonly Credential[]): Promise<void> {
    const { store, vault } = this.#options
    const { account } = place
    const { type } = this.#job
    const pending = await store.secretJobs.pending(account.id, type)
    const left = pending.next && this.#keepOne(vault.openCredential(account.id, type, pending.next, 'next'))
    if (left) {
      // An earlier change, of this job or another one, has left it: the target has one of the two.
      return this.#resolve(place, stored, left, { isFresh: false })
    }
    const wanted =
      pending.wanted && this.#keepOne(vault.openCredential(account.id, type, pending.wanted, 'wanted'))
    let next: Credential
    try {
      next = wanted ?? this.#keepOne(credentialOf(await newSecret(type, place.policy, place.kind)))
    } catch (error) {
      return this.giveUp('failed', new Failure('unsupported', (error as Error).message))
    }
    await this.#record('secret.begin', {})
    await this.#renew()
    const sealed = vault.sealCredential(account.id, next, 'next')
    const begun = await store.secretJobs.begin(this.#job.id, this.#lease, this.#options.now(), sealed)
    if (!begun.isBegun) return
    this.#isBegun = true
    await this.#resolve(place, stored, next, { isFresh: true })
  }

  /**
   * Brings the target and the store together. `isFresh`: the target was not touched yet; otherwise it is asked first, and
   * has the next secret set by its administrator if it has neither.
   */
  async #resolve(
    place: ChangePlace,
    stored: readonly Credential[],
    next: Credential,
    { isFresh }: { isFresh: boolean },
  ): Promise<void> {
    let failure: Failure | undefined
    if (isFresh) failure = await this.#set(place, stored, next)
    let found: Found
    try {
      found = await this.#find(place, stored, next)
      if (found === 'neither' && place.administrator) {
        const refused = await this.#setByAdministrator(place, stored, next)
        failure ??= refused
        found = await this.#find(place, stored, next)
      }
    } catch (error) {
      return this.#later(failure ?? failureOf(error))
    }
    switch (found) {
      case 'next':
        return this.#promote(place, stored, next)
      case 'stored':
        return this.#keepStored(failure, isFresh)
      case 'neither':
        return this.#giveUpUnknown(
          failure ?? new Failure('refused_sign_in', 'the target refuses both secrets'),
        )
      case 'any':
        return this.#giveUpUnknown(
          new Failure('unclear', 'the target lets the account in with any secret: nothing can be proved'),
        )
    }
  }

  /** The target has the stored secret: the change has failed, or was never made. */
  #keepStored(failure: Failure | undefined, isFresh: boolean): Promise<void> {
    const why =
      failure ?? new Failure('interrupted', 'the change was interrupted before the target was changed')
    const mayPass = !isFresh || PASSING.includes(why.code)
    if (mayPass && this.#job.attempts < MAX_ATTEMPTS)
      return this.again(why, isFresh ? undefined : 0, { isOldProved: true })
    return this.#failed(why, true)
  }

  /** Changes the secret at the target, by the account or its administrator. Returns why that was refused. */
  async #set(
    place: ChangePlace,
    stored: readonly Credential[],
    next: Credential,
  ): Promise<Failure | undefined> {
    const account = signInOf(place.account, stored, this.#job.type)
    if (!account) return this.#setByAdministrator(place, stored, next)
    try {
      await this.#renew()
      const change = { account, by: account, isAdministrator: false, next: newOf(next) }
      await this.#options.changer.change(place.plugin, place.target, change)
      return undefined
    } catch (error) {
      const failure = failureOf(error)
      if (!place.administrator || !OF_ACCOUNT.includes(failure.code)) return failure
      return this.#setByAdministrator(place, stored, next)
    }
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
    try {
      await this.#renew()
      const change: SecretChange = { account, by, isAdministrator: true, next: newOf(next) }
      await this.#options.changer.change(place.plugin, place.target, change)
      return undefined
    } catch (error) {
      return failureOf(error)
    }
  }

  /** Finds out which secret the target has. @throws ChangerError if that cannot be known now */
  async #find(place: ChangePlace, stored: readonly Credential[], next: Credential): Promise<Found> {
    const { type } = this.#job
    const withOne = (one: Credential) =>
      signInOf(place.account, [...stored.filter((other) => other.type !== type), one], type)
    // Begins with a wrong one: a right one after it ends the count of failures that some targets keep.
    const wrong = withOne(this.#keepOne(credentialOf(await wrongSecret(type))))
    if (wrong && (await this.#verify(place, wrong)) === 'valid') return 'any'
    const asNext = withOne(next)
    if (asNext && (await this.#verify(place, asNext)) === 'valid') return 'next'
    const asStored = signInOf(place.account, stored, type)
    return asStored && (await this.#verify(place, asStored)) === 'valid' ? 'stored' : 'neither'
  }

  async #verify(place: ChangePlace, as: SignIn) {
    await this.#renew()
    return await this.#options.changer.verify(place.plugin, place.target, as)
  }

  /** Makes the next secret the stored one. */
  async #promote(place: ChangePlace, stored: readonly Credential[], next: Credential): Promise<void> {
    const { store, vault, now, onChanged } = this.#options
    const { account } = place
    const old = stored.find((one) => one.type === next.type)!
    const notRetired = await this.#retire(place, stored, next)
    await this.#renew()
    await this.#record('secret.change', {
      result: 'success',
      ...(notRetired && { reason: `the old key is still valid at the target: ${notRetired.message}` }),
    })
    await store.secretJobs.promote(this.#job.id, this.#lease, {
      now: now(),
      sealed: vault.sealCredential(account.id, next),
      previous: vault.sealCredential(account.id, old, 'previous'),
      revision: account.secretRevision ?? 0,
      severs: this.#job.cause === 'demand',
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
    return this.#isBegun ? this.#giveUpUnknown(failure) : this.#failed(failure, false)
  }

  async #failed(failure: Failure, isOldProved: boolean): Promise<void> {
    if (this.#job.kind === 'change')
      await this.#record('secret.change', {
        result: 'failure',
        reason: `${failure.code}: ${failure.message}`,
      })
    const { code, message } = failure
    await this.#end('failed', { isOldProved, ...(isOldProved && { state: 'ok' as const }), code, message })
  }

  /** Keeps both secrets, since neither could be proved. */
  async #giveUpUnknown(failure: Failure): Promise<void> {
    await this.#record('secret.change', { result: 'failure', reason: `${failure.code}: ${failure.message}` })
    await this.#tellMismatch(`neither secret could be proved, and both are kept: ${failure.message}`)
    const { code, message } = failure
    await this.#end('unknown', { isOldProved: false, state: 'unknown', code, message })
  }

  async giveUp(outcome: ChangeOutcome, failure: Failure): Promise<void> {
    if (this.#isBegun) return this.#giveUpUnknown(failure)
    if (outcome === 'failed') return this.#failed(failure, false)
    await this.#end(outcome, { isOldProved: false, code: failure.code, message: failure.message })
  }

  /** Releases the job until later: by default after a pause that grows. A job that only waits counts no attempt. */
  async again(
    failure: Failure,
    pause?: number,
    { isWaiting = false, isOldProved = false }: { isWaiting?: boolean; isOldProved?: boolean } = {},
  ): Promise<void> {
    const { store, now } = this.#options
    const { attempts, id } = this.#job
    const grown = Math.min(FIRST_PAUSE_MS * 2 ** attempts, LONGEST_PAUSE_MS)
    try {
      await store.secretJobs.retry(id, this.#lease, {
        due: now() + (pause ?? grown),
        attempts: isWaiting ? attempts : attempts + 1,
        isOldProved,
        code: failure.code,
        message: failure.message,
      })
    } catch (error) {
      if (!(error instanceof ChangedError)) throw error
    }
  }

  #end(
    outcome: ChangeOutcome,
    more: { isOldProved: boolean; state?: 'ok' | 'mismatch' | 'unknown'; code: string; message: string },
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

type Found = 'next' | 'stored' | 'neither' | 'any'

function failureOf(error: unknown): Failure {
  if (error instanceof ChangerError) return new Failure(error.code, error.message)
  throw error
}

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
