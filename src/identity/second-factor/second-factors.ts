/** Second factors of the bastion's own: one-time codes of an authenticator, and recovery codes in their place. */
import { randomBytes } from 'node:crypto'
import type { Id, User } from '../../model/objects.ts'
import { Secret } from '../../model/secret.ts'
import type { Store, StoredFactor } from '../../store/store.ts'
import type { HashSeal } from '../hashes.ts'
import type { Proved, Refusal } from '../sign-in.ts'
import type { Step } from '../steps.ts'
import { newRecoveryCodes, recoveryDigest } from './recovery.ts'
import { base32, keyUri, stepOfCode } from './totp.ts'

/** As long as the digest, as RFC 4226 advises. */
const SECRET_BYTES = 20
/** Milliseconds within which a first code has to confirm an enrolment. */
export const ENROLMENT_MS = 15 * 60_000
/** Codes in a row of one user that may be wrong, from whichever addresses, and how long further ones are held up. */
export const TRIES = { most: 20, holdMs: 15 * 60_000 }

const PROMPT = 'One-time code (or a recovery code): '

export interface SecondFactorOptions {
  store: Pick<Store, 'users' | 'secondFactors'>
  vault: HashSeal
  /** Milliseconds since the epoch. */
  now: () => number
}

export interface FactorStatus {
  /** Milliseconds since the epoch; absent if the user is not enrolled. */
  enrolled?: number
  recoveryCodes: number
}

/** For the authenticator; shown once. */
export interface Enrolment {
  /** In base 32. */
  secret: string
  uri: string
}

/** `left`: recovery codes that are left, if one was used up. */
type Verdict = { left?: number } | { flaw: Refusal }

export class SecondFactors {
  readonly #options: SecondFactorOptions

  constructor(options: SecondFactorOptions) {
    this.#options = options
  }

  async statusOf(userId: Id): Promise<FactorStatus> {
    const { enrolled, recoveryCodes } = (await this.#rows.find(userId)) ?? { recoveryCodes: 0 }
    return enrolled === undefined ? { recoveryCodes: 0 } : { enrolled, recoveryCodes }
  }

  /** Begins an enrolment, in place of one that was not confirmed. Returns undefined if the user is enrolled. */
  async begin({ id, userName }: Pick<User, 'id' | 'userName'>): Promise<Enrolment | undefined> {
    const bytes = randomBytes(SECRET_BYTES)
    const secret = Secret.of(bytes)
    try {
      const sealed = this.#options.vault.seal(placeOf(id), secret)
      if (!(await this.#rows.begin(id, sealed, this.#options.now()))) return undefined
      const text = base32(secret.reveal())
      return { secret: text, uri: keyUri('Sallyport', userName, text) }
    } finally {
      secret.wipe()
    }
  }

  /**
   * Ends an enrolment by its first code. `announce` is called before it counts. Returns the recovery codes, or undefined
   * if the code is wrong, or no enrolment waits for one.
   */
  async confirm(userId: Id, code: Secret, announce: () => Promise<void>): Promise<string[] | undefined> {
    const factor = await this.#rows.find(userId)
    const now = this.#options.now()
    if (!factor || factor.enrolled !== undefined || !isRecent(factor, now)) return undefined
    if (!(await this.#rows.countTry(userId, now, TRIES))) return undefined
    const found = this.#stepOf(userId, factor, code, now)
    if (!found) return undefined
    await announce()
    const codes = newRecoveryCodes()
    const enrolled = { sealed: factor.sealed, time: now, digests: digestsOf(userId, codes), ...found }
    return (await this.#rows.confirm(userId, enrolled)) ? codes : undefined
  }

  /** Replaces the recovery codes, for a code of the authenticator; as `confirm`. */
  async renew(userId: Id, code: Secret, announce: () => Promise<void>): Promise<string[] | undefined> {
    const verdict = await this.#judge(userId, code, false)
    if ('flaw' in verdict) return undefined
    await announce()
    const codes = newRecoveryCodes()
    return (await this.#rows.setRecoveryCodes(userId, digestsOf(userId, codes))) ? codes : undefined
  }

  /** Removes the factor and its recovery codes; false if the user is not enrolled. */
  async remove(userId: Id): Promise<boolean> {
    return await this.#rows.remove(userId)
  }

  /** Asks for a code after the first factor, if the user is enrolled. */
  async after(proved: Proved): Promise<Step<Proved>> {
    const { id, secretRevision } = proved.user
    const factor = await this.#rows.find(id)
    if (factor?.enrolled === undefined) return { result: 'accepted', value: proved }
    return {
      result: 'challenge',
      round: {
        message: '',
        prompts: [{ text: PROMPT, echo: false }],
        next: async ([answer]) => {
          const verdict = await this.#judge(id, answer, true)
          if ('flaw' in verdict) return { result: 'rejected', reason: verdict.flaw }
          // While they typed, the user may have been changed or removed, and the password replaced.
          const user = await this.#options.store.users.find(id)
          if (!user) return { result: 'rejected', reason: 'unknown_user' }
          if (user.secretRevision !== secretRevision) return { result: 'rejected', reason: 'wrong_password' }
          const { left } = verdict
          return {
            result: 'accepted',
            value: { ...proved, user, ...(left !== undefined && { recoveryCodesLeft: left }) },
          }
        },
        close: () => undefined,
      },
    }
  }

  get #rows() {
    return this.#options.store.secondFactors
  }

  async #judge(userId: Id, answer: Secret | undefined, takesRecovery: boolean): Promise<Verdict> {
    const now = this.#options.now()
    // Counted first, so that simultaneous tries are no more.
    if (!(await this.#rows.countTry(userId, now, TRIES))) return { flaw: 'too_many_codes' }
    const factor = await this.#rows.find(userId)
    if (factor?.enrolled === undefined || !answer) return { flaw: 'wrong_code' }
    const found = this.#stepOf(userId, factor, answer, now)
    if (found) {
      const isNew = await this.#rows.useStep(userId, found.step, found.drift)
      return isNew ? {} : { flaw: 'used_code' }
    }
    const digest = takesRecovery ? recoveryDigest(userId, answer.revealText()) : undefined
    if (digest && (await this.#rows.useRecoveryCode(userId, digest))) {
      return { left: factor.recoveryCodes - 1 }
    }
    const isUsed = this.#stepOf(userId, { ...factor, lastStep: -1 }, answer, now)
    return { flaw: isUsed ? 'used_code' : 'wrong_code' }
  }

  #stepOf(userId: Id, { sealed, drift, lastStep }: StoredFactor, code: Secret, now: number) {
    const secret = this.#options.vault.open(placeOf(userId), sealed)
    try {
      return stepOfCode(secret.reveal(), code.revealText().replaceAll(/\s/g, ''), { now, drift, lastStep })
    } finally {
      secret.wipe()
    }
  }
}

const placeOf = (id: Id) => ({ table: 'second_factors', id, field: 'secret' })

function digestsOf(userId: Id, codes: readonly string[]): Uint8Array[] {
  return codes.map((code) => recoveryDigest(userId, code)!)
}

/** A clock that was set back ends an enrolment, too. */
function isRecent({ begun }: StoredFactor, now: number): boolean {
  return begun <= now && now < begun + ENROLMENT_MS
}
