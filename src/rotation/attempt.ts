/** One attempt at a job: its lease, its events, the secrets that it holds in memory, and its end. */
import type { Audit } from '../audit/events/catalogue.ts'
import type { EventFields } from '../audit/events/fields.ts'
import type { Id } from '../model/objects.ts'
import type { ChangeOutcome, SecretJob } from '../model/password-change.ts'
import { ChangedError } from '../store/engine/errors.ts'
import type { Leaving, PlacedAccount, Store } from '../store/store.ts'
import { type Credential, wipe } from '../vault/credentials.ts'
import type { Vault } from '../vault/vault.ts'
import type { Changer } from './changer.ts'
import type { Failure } from './failure.ts'

/** Milliseconds for which a step has its job to itself; longer than a changer may take for one. */
export const LEASE_MS = 180_000
export const MAX_ATTEMPTS = 12
const FIRST_PAUSE_MS = 30_000
const LONGEST_PAUSE_MS = 3_600_000

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
  /** Resolves after that many milliseconds, or when the broker stops. */
  pause: (ms: number) => Promise<void>
  now: () => number
}

export class Attempt {
  readonly options: MachineOptions
  readonly job: SecretJob
  #lease: number
  readonly #fields: EventFields
  #secrets: Credential[] = []

  /** `placed`: the account, if it is still there. */
  constructor(options: MachineOptions, job: SecretJob, placed: PlacedAccount | undefined) {
    this.options = options
    this.job = job
    this.#lease = job.lease
    this.#fields = {
      ...(job.user !== '' && { user: job.user }),
      method: job.cause,
      ...accountFields(job.accountId, placed),
    }
  }

  get lease(): number {
    return this.#lease
  }

  /** Renews the lease for the next step. @throws ChangedError if another runner has the job */
  async renew(): Promise<void> {
    const lease = this.options.now() + LEASE_MS
    if (lease === this.#lease) return
    await this.options.store.secretJobs.renew(this.job.id, this.#lease, lease)
    this.#lease = lease
  }

  async record(code: 'secret.begin' | 'secret.change', fields: EventFields): Promise<void> {
    await this.options.audit.record(code, { ...this.#fields, ...fields })
  }

  async recordMismatch(reason: string): Promise<void> {
    await this.options.audit.record('secret.mismatch', { ...this.#fields, reason })
  }

  /** Releases the job until later: by default after a pause that grows. A job that only waits counts no attempt. */
  async again(
    failure: Failure,
    { pause, isWaiting = false, left }: { pause?: number; isWaiting?: boolean; left?: Leaving } = {},
  ): Promise<void> {
    const { store, now } = this.options
    const { attempts, id } = this.job
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

  end(
    outcome: ChangeOutcome,
    more: {
      isOldProved: boolean
      left?: Leaving
      state?: 'ok' | 'mismatch' | 'unknown'
      code: string
      message: string
    },
  ): Promise<void> {
    const { store, now } = this.options
    return store.secretJobs.giveUp(this.job.id, this.#lease, { now: now(), outcome, ...more })
  }

  /** Wipes these credentials with the others of the attempt. Returns them. */
  keep(credentials: Credential[]): Credential[] {
    this.#secrets.push(...credentials)
    return credentials
  }

  keepOne(credential: Credential): Credential {
    this.#secrets.push(credential)
    return credential
  }

  wipe(): void {
    for (const secret of this.#secrets) wipe(secret)
  }
}

/** Returns the fields of events that name an account. */
export function accountFields(accountId: Id, placed: PlacedAccount | undefined): EventFields {
  if (!placed) return { object_type: 'account', object: accountId }
  const { account, domain, device } = placed
  return {
    object_type: 'account',
    object: [account.accountName, domain.domainName, device?.deviceName ?? []].flat().join('@'),
    account: account.accountName,
    domain: domain.domainName,
    ...(device && { device: device.deviceName }),
  }
}
