/**
 * Second factors of the bastion's own: one-time codes of an authenticator, recovery codes in their place, and in browsers
 * security keys.
 */
import { randomBytes } from 'node:crypto'
import type { Id, User } from '../../model/objects.ts'
import { Secret } from '../../model/secret.ts'
import type {
  FactorPlace,
  FactorRules,
  SecondFactorRepository,
  Store,
  StoredFactor,
} from '../../store/store.ts'
import { type BasisProof, firstFactorOf, passwordProof } from '../basis.ts'
import type { HashSeal } from '../hashes.ts'
import type { MethodPrompt } from '../methods/method.ts'
import type { KeyRequest, RoundForm } from '../round-form.ts'
import type { Proved, Refusal } from '../sign-in.ts'
import type { Step } from '../steps.ts'
import { newRecoveryCodes, recoveryDigest } from './recovery.ts'
import { isKeyAnswer, type SecurityKeys } from './security-keys.ts'
import { base32, keyUri, stepOfCode } from './totp.ts'

/** As long as the digest, as RFC 4226 advises. */
const SECRET_BYTES = 20
/** Milliseconds within which a first code has to confirm an enrolment. */
export const ENROLMENT_MS = 15 * 60_000
/**
 * Codes in a row of one user that may be wrong, from whichever addresses, and how long further ones are held up: twice as
 * long each time, up to 32 hours, until a right one.
 */
export const TRIES = { most: 20, holdMs: 15 * 60_000, doublings: 7 }

/** For fronts that can ask no security key. */
const BROWSER_ONLY =
  'Your second factor is a security key, which only a browser can ask for: use the sign-in page, or set up one-time codes, too.'
const KEY_PROMPT = 'Enter ends this sign-in: '
/** First codes that may be wrong in one dialogue. */
const FIRST_TRIES = 3
const PROMPT = 'One-time code (or a recovery code): '
const HINT =
  'this target needs a one-time code: sign in with keyboard-interactive, by a client that can ask for it (not BatchMode)'

export interface SecondFactorOptions {
  store: Pick<Store, 'users' | 'secondFactors'>
  keys: Pick<SecurityKeys, 'list' | 'request' | 'judge'>
  vault: HashSeal
  /** Milliseconds since the epoch. */
  now: () => number
}

export interface FactorStatus {
  /** Milliseconds since the epoch; absent if the user is not enrolled. */
  enrolled?: number
  recoveryCodes: number
  securityKeys: number
  /** Until when wrong codes hold up all of them; absent if none do. */
  heldUntil?: number
}

/** Wrong codes hold up further ones. */
export interface Held {
  userId: Id
  ms: number
  /** Address of the client that sent the last one. */
  source: string
}

/** For the authenticator; shown once. */
export interface Enrolment {
  /** In base 32. */
  secret: string
  uri: string
}

/** An enrolment whose first code was right, as the store takes it. */
type Confirmed = Parameters<SecondFactorRepository['confirm']>[1]

/** The factors of a user that a round asks for. */
interface Asked {
  hasCodes: boolean
  key: KeyRequest | undefined
}

/** `left`: recovery codes that are left, if one was used up. */
type Verdict = { left?: number } | { flaw: Refusal }

export class SecondFactors {
  readonly #options: SecondFactorOptions
  /** Called before an enrolment in a dialogue counts; `source` is the client's address. */
  onEnrolled: (user: User, source: string) => Promise<void> = async () => undefined
  /** Called before the verdict on the wrong code that begins a hold. */
  onHeld: (held: Held) => Promise<void> = async () => undefined

  constructor(options: SecondFactorOptions) {
    this.#options = options
  }

  async statusOf(userId: Id): Promise<FactorStatus> {
    const factor = await this.#rows.find(userId)
    const { length: securityKeys } = await this.#options.keys.list(userId)
    if (factor?.enrolled === undefined) return { recoveryCodes: 0, securityKeys }
    const { enrolled, recoveryCodes } = factor
    const heldUntil = endOfHold(factor, this.#options.now())
    return { enrolled, recoveryCodes, securityKeys, ...(heldUntil !== undefined && { heldUntil }) }
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
   * Ends an enrolment by its first code. `source`: the client's address. `announce` is called before it counts. Returns the
   * recovery codes, or undefined if the code is wrong, or no enrolment waits for one.
   */
  async confirm(
    userId: Id,
    code: Secret,
    source: string,
    announce: () => Promise<void>,
  ): Promise<string[] | undefined> {
    const codes = newRecoveryCodes()
    const confirmed = await this.#firstOf(userId, code, codes, source)
    if (!confirmed) return undefined
    await announce()
    return (await this.#rows.confirm(userId, confirmed)) ? codes : undefined
  }

  /** Replaces the recovery codes, for a code of the authenticator; as `confirm`. */
  async renew(
    userId: Id,
    code: Secret,
    source: string,
    announce: () => Promise<void>,
  ): Promise<string[] | undefined> {
    const verdict = await this.#judge(userId, code, source, false)
    if ('flaw' in verdict) return undefined
    await announce()
    const codes = newRecoveryCodes()
    return (await this.#rows.setRecoveryCodes(userId, digestsOf(userId, codes))) ? codes : undefined
  }

  /** Whether it is a current code of the user's authenticator, which counts once. `source`: the client's address. */
  async isCode(userId: Id, code: Secret, source: string): Promise<boolean> {
    return !('flaw' in (await this.#judge(userId, code, source, false)))
  }

  /** Lets further codes be judged at once, after whichever wrong ones. */
  async release(userId: Id): Promise<void> {
    await this.#rows.forgive(userId)
  }

  /** Removes the factor, its recovery codes and the security keys; false if the user is not enrolled. */
  async remove(userId: Id): Promise<boolean> {
    return await this.#rows.remove(userId)
  }

  /**
   * Asks for a code after the first factor, if the user is enrolled, and enrols one who has to be; not for a certificate, unless
   * something else requires it. `source`: the client's address. `required`: what requires one besides the user's groups and profile.
   */
  async after(proved: Proved, source: string, required?: FactorRules): Promise<Step<Proved>> {
    const { user, isProvedBefore } = proved
    if (isProvedBefore && !required) return { result: 'accepted', value: proved }
    const own = await this.#rows.policyOf(user)
    const policy = own && required ? strictest(own, required) : (own ?? required)
    const place = { address: source, firstFactor: firstFactorOf(proofOf(proved)) }
    if (!policy) {
      const asked = await this.#askedOf(user)
      return asked ? this.#ask(proved, asked, place, false) : { result: 'accepted', value: proved }
    }
    const covered = await this.covered(proved, place, policy)
    if (covered) return { result: 'accepted', value: covered }
    const step = await this.ask(proved, place, policy)
    return required && step.result === 'challenge' ? { ...step, round: { ...step.round, hint: HINT } } : step
  }

  /** Returns the sign-in if a key, or a code of a while ago, counts by this policy for a code. */
  async covered(
    proved: Proved,
    place: FactorPlace,
    { areKeysEnough, rememberS }: FactorRules,
  ): Promise<Proved | undefined> {
    const { user, isUserVerified } = proved
    if (isUserVerified && areKeysEnough) return proved
    if (rememberS === 0) return undefined
    const now = this.#options.now()
    const time = { since: now - rememberS * 1000, now }
    const isRemembered = await this.#rows.isRemembered(user, place, time)
    return isRemembered ? { ...proved, isFactorRemembered: true } : undefined
  }

  /** Asks for a code, which counts at `place` for a while if the policy says so, or enrols the user. */
  async ask(proved: Proved, place: FactorPlace, { rememberS }: FactorRules): Promise<Step<Proved>> {
    const { user } = proved
    const asked = await this.#askedOf(user)
    if (asked) return this.#ask(proved, asked, place, rememberS > 0)
    const begun = await this.begin(user)
    return begun
      ? this.#askFirst(proved, place.address, begun, FIRST_TRIES)
      : this.#ask(proved, { hasCodes: true, key: undefined }, place, false)
  }

  /** Returns what the user can be asked for, or undefined if there is nothing yet. */
  async #askedOf({ id }: Pick<User, 'id'>): Promise<Asked | undefined> {
    const hasCodes = (await this.#rows.find(id))?.enrolled !== undefined
    const key = await this.#options.keys.request(id)
    return hasCodes || key ? { hasCodes, key } : undefined
  }

  #ask(proved: Proved, { hasCodes, key }: Asked, place: FactorPlace, isRemembered: boolean): Step<Proved> {
    const form = { kind: 'code', hasCodes, ...(key && { key }) } as const
    const shown = { message: hasCodes ? '' : BROWSER_ONLY, form }
    return asking(shown, { text: hasCodes ? PROMPT : KEY_PROMPT, echo: false }, async (answer) => {
      const verdict = await this.#judgeEither(proved.user.id, answer, place.address, { hasCodes, key })
      if ('flaw' in verdict) return { result: 'rejected', reason: verdict.flaw }
      const { left } = verdict
      const still = await this.#still({
        ...proved,
        hasFactor: true,
        ...(left !== undefined && { recoveryCodesLeft: left }),
      })
      if (still.result === 'accepted' && left === undefined && isRemembered)
        await this.#rows.remember(still.value.user, place, this.#options.now())
      return still
    })
  }

  /** Asks for the first code of a new authenticator, which proves nothing yet: the secret has just been shown. */
  #askFirst(proved: Proved, source: string, enrolment: Enrolment, tries: number): Step<Proved> {
    const isAgain = tries < FIRST_TRIES
    const message = isAgain ? 'This is not its current code: try the next one.' : inviting(enrolment)
    const form = { kind: 'enrol', secret: enrolment.secret, isAgain } as const
    const shown = { message, uri: enrolment.uri, form }
    return asking(shown, { text: 'First code: ', echo: false }, async (answer) => {
      const codes = newRecoveryCodes()
      const confirmed = answer && (await this.#firstOf(proved.user.id, answer, codes, source))
      if (confirmed) return this.#askNoted(proved, source, codes, confirmed)
      if (tries <= 1) return { result: 'rejected', reason: 'wrong_code' }
      return this.#askFirst(proved, source, enrolment, tries - 1)
    })
  }

  /** Shows the recovery codes. The enrolment counts once they were seen. */
  #askNoted(proved: Proved, source: string, codes: readonly string[], confirmed: Confirmed): Step<Proved> {
    const message = `Each of these signs you in once without the authenticator. Note them down:\n${codes.join('  ')}`
    const form = { kind: 'recovery_codes', codes } as const
    return asking({ message, form }, { text: 'Enter goes on: ', echo: true }, async () => {
      const still = await this.#still({ ...proved, hasFactor: true })
      if (still.result !== 'accepted') return still
      await this.onEnrolled(proved.user, source)
      if (await this.#rows.confirm(proved.user.id, confirmed)) return still
      // Another enrolment has taken its place meanwhile.
      return { result: 'rejected', reason: 'wrong_code' }
    })
  }

  /** While they typed, the user may have been changed or removed, and the password replaced. */
  async #still(proved: Proved): Promise<Step<Proved>> {
    const user = await this.#options.store.users.find(proved.user.id)
    if (!user) return { result: 'rejected', reason: 'unknown_user' }
    if (user.secretRevision !== proved.user.secretRevision)
      return { result: 'rejected', reason: 'wrong_password' }
    return { result: 'accepted', value: { ...proved, user } }
  }

  /** Judges the first code of the enrolment that waits for one. */
  async #firstOf(
    userId: Id,
    code: Secret,
    codes: readonly string[],
    source: string,
  ): Promise<Confirmed | undefined> {
    const factor = await this.#rows.find(userId)
    const time = this.#options.now()
    if (!factor || factor.enrolled !== undefined || !isRecent(factor, time)) return undefined
    const counted = await this.#countTry(userId, time)
    if (!counted) return undefined
    const found = this.#stepOf(userId, factor, code, time)
    if (!found) await this.#noteWrong(userId, source, counted)
    return found && { sealed: factor.sealed, time, digests: digestsOf(userId, codes), ...found }
  }

  get #rows() {
    return this.#options.store.secondFactors
  }

  async #judgeEither(
    userId: Id,
    answer: Secret | undefined,
    source: string,
    { hasCodes, key }: Asked,
  ): Promise<Verdict> {
    const text = answer?.revealText() ?? ''
    if (!key || !isKeyAnswer(text))
      return hasCodes ? await this.#judge(userId, answer, source, true) : { flaw: 'wrong_code' }
    const flaw = await this.#options.keys.judge(userId, key, text)
    return flaw === undefined ? {} : { flaw }
  }

  async #judge(
    userId: Id,
    answer: Secret | undefined,
    source: string,
    takesRecovery: boolean,
  ): Promise<Verdict> {
    const now = this.#options.now()
    // Counted first, so that simultaneous tries are no more.
    const counted = await this.#countTry(userId, now)
    if (!counted) return { flaw: 'too_many_codes' }
    const verdict = await this.#judgeCounted(userId, answer, takesRecovery, now)
    if ('flaw' in verdict) await this.#noteWrong(userId, source, counted)
    return verdict
  }

  async #judgeCounted(
    userId: Id,
    answer: Secret | undefined,
    takesRecovery: boolean,
    now: number,
  ): Promise<Verdict> {
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

  /** Returns undefined if no further code may be judged now; `ms`: how long that is so if this one is wrong, or 0. */
  async #countTry(userId: Id, now: number): Promise<Pick<Held, 'ms'> | undefined> {
    const { most } = TRIES
    const failed = (await this.#rows.find(userId))?.failed ?? 0
    const tries = await this.#rows.countTry(userId, now, { most, holdMs: holdMsOf(failed) })
    if (tries === undefined) return undefined
    return { ms: tries < most ? 0 : holdMsOf(failed + 1) }
  }

  async #noteWrong(userId: Id, source: string, { ms }: Pick<Held, 'ms'>): Promise<void> {
    if (ms > 0) await this.onHeld({ userId, ms, source })
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

function asking(
  shown: { message: string; uri?: string; form?: RoundForm },
  prompt: MethodPrompt,
  next: (answer: Secret | undefined) => Promise<Step<Proved>>,
): Step<Proved> {
  const round = {
    ...shown,
    prompts: [prompt],
    next: ([answer]: readonly Secret[]) => next(answer),
    close: () => undefined,
  }
  return { result: 'challenge', round }
}

function strictest(a: FactorRules, b: FactorRules): FactorRules {
  return {
    rememberS: Math.min(a.rememberS, b.rememberS),
    areKeysEnough: a.areKeysEnough && b.areKeysEnough,
  }
}

/** Returns the first factor of a sign-in in progress. */
function proofOf({ user, by, key }: Proved): BasisProof {
  return key ? { method: 'key', key } : passwordProof(user, by)
}

function inviting({ secret }: Enrolment): string {
  const shown = secret.match(/.{4}/g)!.join(' ')
  return `You need a second factor. Add this to an authenticator, by hand or as a QR code:\n  ${shown}`
}

/** Returns how long codes are held up after so many wrong ones. */
function holdMsOf(failed: number): number {
  const { most, holdMs, doublings } = TRIES
  return holdMs * 2 ** Math.min(doublings, Math.max(0, Math.ceil(failed / most) - 1))
}

/** Returns when the hold ends, or undefined if there is none. A clock that was set back ends it, too. */
function endOfHold({ tries, tried, failed }: StoredFactor, now: number): number | undefined {
  const end = tried + holdMsOf(failed)
  return tries < TRIES.most || now < tried || end <= now ? undefined : end
}

const placeOf = (id: Id) => ({ table: 'second_factors', id, field: 'secret' })

function digestsOf(userId: Id, codes: readonly string[]): Uint8Array[] {
  return codes.map((code) => recoveryDigest(userId, code)!)
}

/** A clock that was set back ends an enrolment, too. */
function isRecent({ begun }: StoredFactor, now: number): boolean {
  return begun <= now && now < begun + ENROLMENT_MS
}
