/**
 * Changes and checks of secrets: asked for by users, check-ins and schedules, stored as jobs, and done some at a time. A broker
 * that starts goes on with those that it finds.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Audit } from '../audit/events/catalogue.ts'
import type { Account, CredentialType, Domain, Id, SessionRecord } from '../model/objects.ts'
import { DEFAULT_CHECKOUT_POLICY } from '../model/objects.ts'
import type { ChangeCause, SecretJob } from '../model/password-change.ts'
import { MissingReferenceError } from '../store/engine/errors.ts'
import type { AskedJob, Store } from '../store/store.ts'
import type { Credential } from '../vault/credentials.ts'
import type { Vault } from '../vault/vault.ts'
import { LEASE_MS } from './attempt.ts'
import type { Changer } from './changer.ts'
import { Machine } from './machine.ts'
import { kindOf } from './place.ts'
import { runSchedules } from './schedule.ts'

/** Jobs in progress. */
export const MAX_AT_ONCE = 32
/** Milliseconds between two looks for jobs that are due and for schedules. A job that is asked for here begins at once. */
const LOOK_MS = 5_000
/** Milliseconds for which a hand-out of a secret waits for the end of a change. */
const SETTLED_MS = 10_000
/** Jobs read at a time. */
const READ_AT_ONCE = 64

export interface RotationOptions {
  store: Store
  vault: Vault
  audit: Pick<Audit, 'record'>
  changer: Changer
  /** Claims an account that its policy locks, or returns undefined if a session has it. */
  claim: (accountId: Id) => (() => void) | undefined
  now: () => number
  onError: (error: unknown, job?: Id) => void
  lookMs?: number
  settledMs?: number
}

export class Rotation {
  readonly #options: RotationOptions
  readonly #machine: Machine
  /** Jobs in progress, by their accounts: each account has one at most. */
  readonly #running = new Map<Id, { domainId: Id; kind: SecretJob['kind']; done: Promise<void> }>()
  /** Called when an attempt at the job has ended. */
  readonly #waiting = new Map<Id, Set<() => void>>()
  #looks: NodeJS.Timeout | undefined
  #filling: Promise<void> | undefined
  #isAskedAgain = false
  #looking: Promise<void> | undefined
  /** Accounts of jobs in progress whose checkout or session has ended meanwhile. */
  readonly #freed = new Set<Id>()
  readonly #stopping = new AbortController()

  constructor(options: RotationOptions) {
    this.#options = options
    const { store, vault, audit, changer, now } = options
    this.#machine = new Machine({
      ...{ store, vault, audit, changer, now },
      hold: (accountId) => this.#hold(accountId),
      onChanged: (accountId, user) => this.#endCheckouts(accountId, user),
      pause: (ms) => sleep(ms, undefined, { signal: this.#stopping.signal }).catch(() => undefined),
    })
  }

  /** Goes on with what an earlier broker has left, and looks for more from now on. */
  async start(): Promise<void> {
    await this.#options.store.secretJobs.release()
    this.#looks = setInterval(() => void this.#look(), this.#options.lookMs ?? LOOK_MS)
    this.#looks.unref()
    await this.#look()
  }

  /** Resolves when no job is in progress, and none begins any more. The changer has to be ended before. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    clearInterval(this.#looks)
    for (const waiting of this.#waiting.values()) for (const resolve of waiting) resolve()
    this.#waiting.clear()
    await this.#looking
    await this.#filling
    await Promise.all([...this.#running.values()].map(({ done }) => done))
  }

  get running(): number {
    return this.#running.size
  }

  /** Whether the account's secret may be about to die. A check finds at most that it is dead. */
  isChanging(accountId: Id): boolean {
    return this.#running.get(accountId)?.kind === 'change'
  }

  /** Resolves when the account's secret is not being changed any more. Returns false if it still is after some time. */
  async settled(accountId: Id): Promise<boolean> {
    if (!this.isChanging(accountId)) return true
    const done = this.#running.get(accountId)?.done
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#options.settledMs ?? SETTLED_MS)
    })
    await Promise.race([done, late])
    clearTimeout(timer)
    return !this.isChanging(accountId)
  }

  /** Whether the account has a secret of these types that its domain changes. */
  async changes(account: Account, types: readonly CredentialType[]): Promise<boolean> {
    const changed = changeable(await this.#options.store.domains.find(account.domainId))
    return types.some((type) => changed.includes(type) && account.credentialTypes.includes(type))
  }

  /**
   * Asks for a change of the account's secrets of these types now, by default of all that its domain can change; `wanted`: the
   * new one. Returns the jobs; none if its domain changes none of them.
   * @throws DuplicateError if one is wanted while a change is under way
   */
  async change(
    account: Account,
    asked: { cause: ChangeCause; user: string; isForced: boolean; types?: readonly CredentialType[] },
    wanted?: Credential,
  ): Promise<SecretJob[]> {
    const { store, vault, now } = this.#options
    const { cause, user, isForced, types = account.credentialTypes } = asked
    const changed = changeable(await store.domains.find(account.domainId))
    const jobs: SecretJob[] = []
    for (const type of types) {
      if (!changed.includes(type) || !account.credentialTypes.includes(type)) continue
      const time = now()
      const job: AskedJob = {
        ...{ accountId: account.id, type, kind: 'change', cause, user, isForced },
        ...{ due: time, created: time },
      }
      const sealed = wanted?.type === type ? vault.sealCredential(account.id, wanted, 'wanted') : undefined
      jobs.push(await store.secretJobs.add(job, sealed))
    }
    if (jobs.length > 0) this.kick()
    return jobs
  }

  /** Asks for a change of all secrets of a domain. Returns the jobs that were added. */
  async changeDomain(domain: Domain, user: string, isForced: boolean): Promise<SecretJob[]> {
    const { store, now } = this.#options
    const time = now()
    const asked = { kind: 'change', cause: 'demand', user, isForced, due: time, created: time } as const
    const jobs = await store.secretJobs.addForDomain(domain.id, undefined, changeable(domain), asked)
    this.kick()
    return jobs
  }

  /**
   * Asks for the change that the account's checkout policy names for the end of a checkout or of a session. Call it before that
   * end is stored: the change waits for it, and a crash between the two forgets none.
   */
  async onReturn(accountId: Id, cause: 'checkin' | 'session', user: string): Promise<void> {
    const { store } = this.#options
    const [placed] = await store.accounts.meant({ account: accountId }, 1)
    if (!placed || placed.account.isKept) return
    const policyId = placed.account.checkoutPolicyId ?? DEFAULT_CHECKOUT_POLICY
    const policy = await store.checkoutPolicies.find(policyId)
    if (policy?.changesAtCheckin) await this.change(placed.account, { cause, user, isForced: false })
  }

  /** Reports that a checkout or session has ended: changes that waited for it may begin. */
  async freed(accountId: Id): Promise<void> {
    const { store, now } = this.#options
    // One that finds the account in use only now ends its attempt later, and would wait for an end that has been.
    if (this.#running.has(accountId)) this.#freed.add(accountId)
    await store.secretJobs.wake(accountId, now())
    this.kick()
  }

  /** Returns the job when an attempt at it has ended, or as it is after `ms`. */
  async attempted(id: Id, ms: number): Promise<SecretJob | undefined> {
    const { store } = this.#options
    const before = await store.secretJobs.find(id)
    if (!before || before.ended !== undefined || ms <= 0 || this.#stopping.signal.aborted) return before
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      const waiting = this.#waiting.get(id) ?? new Set()
      this.#waiting.set(id, waiting.add(resolve))
      timer = setTimeout(() => {
        waiting.delete(resolve)
        if (waiting.size === 0) this.#waiting.delete(id)
        resolve()
      }, ms)
    })
    clearTimeout(timer)
    return await store.secretJobs.find(id)
  }

  /** Begins jobs that are due, as many as may be in progress. */
  kick(): void {
    if (this.#filling) {
      this.#isAskedAgain = true
      return
    }
    this.#filling = this.#fill()
      .catch((error: unknown) => this.#options.onError(error))
      .finally(() => {
        this.#filling = undefined
        if (!this.#isAskedAgain) return
        this.#isAskedAgain = false
        this.kick()
      })
  }

  /** Looks for runs of schedules and for jobs that are due; joins a look in progress. */
  #look(): Promise<void> {
    const { store, now, onError } = this.#options
    if (store.reach.away || this.#stopping.signal.aborted) return Promise.resolve()
    this.#looking ??= runSchedules(store, now())
      .catch(onError)
      .then(() => {
        this.#looking = undefined
        this.kick()
      })
    return this.#looking
  }

  async #fill(): Promise<void> {
    const { store, now } = this.#options
    for (;;) {
      if (this.#stopping.signal.aborted || store.reach.away) return
      const free = MAX_AT_ONCE - this.#running.size
      if (free <= 0) return
      const busy = await this.#busyDomains()
      const due = await store.secretJobs.due(now(), READ_AT_ONCE, busy)
      let begun = 0
      for (const job of due) {
        if (begun >= free || this.#stopping.signal.aborted) break
        if (this.#running.has(job.accountId) || !(await this.#hasRoom(job.domainId))) continue
        const claimed = await store.secretJobs.claim(job.id, now(), now() + LEASE_MS)
        if (!claimed) continue
        begun++
        this.#begin(claimed, job.domainId)
      }
      if (begun === 0) return
    }
  }

  #begin(job: SecretJob, domainId: Id): void {
    const { store, now } = this.#options
    const done = this.#machine
      .run(job)
      .catch((error: unknown) => this.#options.onError(error, job.id))
      .then(async () => {
        this.#running.delete(job.accountId)
        if (this.#freed.delete(job.accountId)) await store.secretJobs.wake(job.accountId, now())
      })
      .catch((error: unknown) => this.#options.onError(error, job.id))
      .then(() => {
        for (const resolve of this.#waiting.get(job.id) ?? []) resolve()
        this.#waiting.delete(job.id)
        if (!this.#stopping.signal.aborted) this.kick()
      })
    this.#running.set(job.accountId, { domainId, kind: job.kind, done })
  }

  /** Domains of which no more accounts are to be changed at the same time: they are mostly one target. */
  async #busyDomains(): Promise<Id[]> {
    const found: Id[] = []
    for (const id of new Set([...this.#running.values()].map(({ domainId }) => domainId)))
      if (!(await this.#hasRoom(id))) found.push(id)
    return found
  }

  async #hasRoom(domainId: Id): Promise<boolean> {
    const count = [...this.#running.values()].filter((one) => one.domainId === domainId).length
    if (count === 0) return true
    const limit = (await this.#options.store.domains.find(domainId))?.change?.parameters['concurrency'] ?? 1
    return typeof limit === 'number' && count < limit
  }

  async #hold(accountId: Id): Promise<(() => void) | undefined> {
    const { store, claim } = this.#options
    const account = await store.accounts.find(accountId)
    const policy = await store.checkoutPolicies.find(account?.checkoutPolicyId ?? DEFAULT_CHECKOUT_POLICY)
    return policy?.enableLock === false ? () => undefined : claim(accountId)
  }

  /** Ends checkouts of a secret that is no longer the account's. */
  async #endCheckouts(accountId: Id, by: string): Promise<void> {
    const { store, audit, now } = this.#options
    const out = await store.checkouts.active(accountId, now())
    const [placed] = out.length === 0 ? [] : await store.accounts.meant({ account: accountId }, 1)
    for (const { id, userId } of out) {
      const holder = await store.users.find(userId)
      const comment = 'its secret was changed'
      await audit.record('checkout.forced', {
        ...(by !== '' && { user: by }),
        account: placed?.account.accountName ?? accountId,
        ...(placed && { domain: placed.domain.domainName }),
        ...(placed?.device && { device: placed.device.deviceName }),
        object: id,
        holder: holder?.userName ?? userId,
        reason: comment,
      })
      try {
        await store.checkouts.end(id, now(), { by: by === '' ? 'sallyport' : by, comment })
      } catch (error) {
        // Its user has returned it meanwhile.
        if (!(error instanceof MissingReferenceError)) throw error
      }
    }
  }

  /**
   * Asks for the changes that sessions of a broker that has died would have been followed by. Call it before these are
   * closed.
   */
  async onAbandoned(
    sessions: readonly Pick<SessionRecord, 'account' | 'domain' | 'device' | 'user'>[],
  ): Promise<void> {
    const { store } = this.#options
    for (const { account, domain: domainName, device, user } of sessions) {
      if (domainName === '') continue
      const [local] = await store.accounts.meant({ account, domainName, device }, 1)
      const [placed] = local ? [local] : await store.accounts.meant({ account, domainName }, 1)
      if (placed) await this.onReturn(placed.account.id, 'session', user)
    }
  }
}

/** Returns the types of secrets that the domain changes. */
function changeable(domain: Domain | undefined): readonly CredentialType[] {
  return domain?.change?.isEnabled ? (kindOf(domain.change.plugin)?.credentials ?? []) : []
}
