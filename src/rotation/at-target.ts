/** The part of an attempt that asks the target: which secret it has, and for the next one. */
import type { NewSecret, SecretChange, SignIn, Verdict } from '../contract/change.ts'
import { Secret } from '../model/secret.ts'
import type { Credential } from '../vault/credentials.ts'
import { publicLine } from '../vault/formats/generated.ts'
import type { Attempt } from './attempt.ts'
import { Failure, failureOf, OF_ACCOUNT, UNTOUCHED } from './failure.ts'
import { wrongSecret } from './keys.ts'
import { type ChangePlace, signInOf } from './place.ts'

/** Milliseconds before the next secret is tried once more: a change may have been made between two sign-ins. */
const LATE_MS = 2_000

export type Found = 'next' | 'stored' | 'doubtful' | 'neither' | 'any'

/** Secrets beside the stored one that the target may have. `doubtful`: one that it has refused after a change without an answer. */
export interface Left {
  next?: Credential
  doubtful?: Credential
}

export class AtTarget {
  readonly #attempt: Attempt
  readonly #place: ChangePlace
  readonly #stored: readonly Credential[]
  /** Whether the target may have the next secret, or get it later. */
  isTouched = true
  /** Whether the target has refused a wrong secret in this attempt. */
  #isProbed = false
  #isAnnounced = false

  constructor(attempt: Attempt, place: ChangePlace, stored: readonly Credential[]) {
    this.#attempt = attempt
    this.#place = place
    this.#stored = stored
  }

  /** Returns how the account signs in with the stored secret. */
  get asStored(): SignIn | undefined {
    return signInOf(this.#place.account, this.#stored, this.#attempt.job.type)
  }

  /** Whether the target accepts the stored secret. @throws ChangerError */
  async hasStored(): Promise<boolean> {
    return await this.#isValid(this.asStored)
  }

  /** Finds out which secret the target has. @throws ChangerError if that cannot be known now */
  async find({ next, doubtful }: Left): Promise<Found> {
    // Begins with a wrong one: a right one after it ends the count of failures that some targets keep.
    if (await this.takesAny()) return 'any'
    if (next && (await this.#isValid(this.#signInBy(next)))) return 'next'
    if (await this.hasStored()) return 'stored'
    if (doubtful && (await this.#isValid(this.#signInBy(doubtful)))) return 'doubtful'
    if (!next || !this.isTouched) return 'neither'
    await this.#attempt.options.pause(LATE_MS)
    return (await this.#isValid(this.#signInBy(next))) ? 'next' : 'neither'
  }

  /** Whether the target lets the account in with a secret that it cannot have. Asked once in an attempt. */
  async takesAny(): Promise<boolean> {
    if (this.#isProbed) return false
    const wrong = this.#attempt.keepOne(credentialOf(await wrongSecret(this.#attempt.job.type)))
    if (await this.#isValid(this.#signInBy(wrong))) return true
    this.#isProbed = true
    return false
  }

  /** Has the account or its administrator set the secret. Returns why that was refused. */
  async set(next: Credential): Promise<Failure | undefined> {
    const account = this.asStored
    if (!account) return this.setByAdministrator(next)
    const failure = await this.#ask({ account, by: account, isAdministrator: false, next: newOf(next) })
    if (!failure || !this.#place.administrator || !OF_ACCOUNT.includes(failure.code)) return failure
    return this.setByAdministrator(next)
  }

  async setByAdministrator(next: Credential): Promise<Failure | undefined> {
    const { administrator, account: of } = this.#place
    if (!administrator) return new Failure('unsupported', 'the account has no secret to sign in with')
    const theirs = this.#attempt.keep(await this.#attempt.options.vault.credentials(administrator.id))
    const by = signInOf(administrator, theirs, 'password') ?? signInOf(administrator, theirs, 'ssh_key')
    if (!by) return new Failure('unsupported', 'no secret is stored for the administrator account')
    const account = this.asStored ?? { login: of.accountLogin, secret: { type: 'password', password: '' } }
    return this.#ask({ account, by, isAdministrator: true, next: newOf(next) })
  }

  /** Withdraws an old key, which is valid beside the new one. Returns why it could not be. */
  async retire(next: Credential): Promise<Failure | undefined> {
    const old = this.asStored
    const account = signInOf(this.#place.account, [next], this.#attempt.job.type)
    if (this.#attempt.job.type !== 'ssh_key' || !old || !account) return undefined
    try {
      await this.#attempt.renew()
      const retired = { account, by: account, isAdministrator: false, old: old.secret }
      await this.#attempt.options.changer.retire(this.#place.plugin, this.#place.target, retired)
      return undefined
    } catch (error) {
      return failureOf(error)
    }
  }

  async #ask(change: SecretChange): Promise<Failure | undefined> {
    if (!this.#isAnnounced) await this.#attempt.record('secret.begin', {})
    this.#isAnnounced = true
    await this.#attempt.renew()
    try {
      await this.#attempt.options.changer.change(this.#place.plugin, this.#place.target, change)
      this.isTouched = true
      return undefined
    } catch (error) {
      const failure = failureOf(error)
      if (!UNTOUCHED.includes(failure.code)) this.isTouched = true
      return failure
    }
  }

  async #isValid(as: SignIn | undefined): Promise<boolean> {
    return as !== undefined && (await this.#verify(as)) === 'valid'
  }

  async #verify(as: SignIn): Promise<Verdict> {
    await this.#attempt.renew()
    return await this.#attempt.options.changer.verify(this.#place.plugin, this.#place.target, as)
  }

  /** Returns how the account signs in with another secret of the job's type. */
  #signInBy(one: Credential): SignIn | undefined {
    const { type } = this.#attempt.job
    return signInOf(this.#place.account, [...this.#stored.filter((other) => other.type !== type), one], type)
  }
}

export function credentialOf(secret: NewSecret): Credential {
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
