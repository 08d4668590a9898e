/**
 * Second factors that authorizations require: each connection proves one before the first session that needs it, during the
 * sign-in or on its own screen. A ticket carries that of the sign-in that it came of.
 */
import { canonicalName, resolveTarget, type Target } from '../access/targets.ts'
import type { Audit, FieldsOf } from '../audit/events/catalogue.ts'
import type { FactorAnswers, OpenAnswer } from '../contract/gate.ts'
import { firstFactorOf } from '../identity/basis.ts'
import type { Identities } from '../identity/chain.ts'
import { LOCKOUT_LIMITS } from '../identity/lockout.ts'
import type { Outcome } from '../identity/sign-in.ts'
import type { WantedTarget } from '../model/login.ts'
import type { Id, User } from '../model/objects.ts'
import type { Protocol } from '../model/rights.ts'
import { Secret } from '../model/secret.ts'
import type { FactorRules, Store } from '../store/store.ts'
import { Denial } from './denial.ts'
import { recordFactor, roundOf, whoFields } from './sign-in-fields.ts'
import type { SignedIn } from './signed-in.ts'

const METHOD = 'second_factor'
const REFUSED = 'the second factor was not accepted'

export interface FactorDeskOptions {
  store: Pick<Store, 'access' | 'secondFactors'>
  identities: Pick<Identities, 'further' | 'answer' | 'abandon'>
  audit: Audit
  /** Milliseconds since the epoch. */
  now: () => number
}

export class FactorDesk {
  readonly #options: FactorDeskOptions

  constructor(options: FactorDeskOptions) {
    this.#options = options
  }

  /** Returns what the target of a login string requires of a user that may open it, or undefined. */
  async ahead(userId: Id, wanted: WantedTarget, protocol: Protocol): Promise<FactorRules | undefined> {
    const { store, now } = this.#options
    const rows = await store.access.sessionTargets(userId, now(), { device: wanted.device })
    const resolution = resolveTarget(rows, wanted, protocol)
    return resolution.result === 'found' ? await this.#rulesOf(resolution.target) : undefined
  }

  /**
   * Returns undefined once the user has proved a second factor, or the answer that asks for it. `owner`: token of the
   * sign-in. @throws Denial for a wrong answer
   */
  async cleared(
    signedIn: SignedIn,
    user: User,
    target: Target,
    owner: string,
    answers: FactorAnswers | undefined,
  ): Promise<OpenAnswer | undefined> {
    const rules = await this.#rulesOf(target)
    if (!rules) return undefined
    const outcome =
      answers && answers.challenge === signedIn.factorChallenge
        ? await this.#answered(signedIn, owner, answers)
        : await this.#asked(signedIn, user, owner, rules)
    return await this.#judged(signedIn, target, outcome)
  }

  async #rulesOf({ needsFactor, authorizationIds }: Target): Promise<FactorRules | undefined> {
    return needsFactor ? await this.#options.store.secondFactors.rulesOf(authorizationIds) : undefined
  }

  async #answered(signedIn: SignedIn, owner: string, { challenge, answers }: FactorAnswers) {
    delete signedIn.factorChallenge
    const texts = answers.map((text) => Secret.of(text))
    const { outcome, password } = await this.#options.identities.answer(challenge, ownerOf(owner), texts)
    password?.wipe()
    return outcome
  }

  #asked(signedIn: SignedIn, user: User, owner: string, rules: FactorRules): Promise<Outcome> {
    const { identities } = this.#options
    const { source, basis, factorChallenge, isUserVerified } = signedIn
    if (factorChallenge !== undefined) identities.abandon(factorChallenge)
    const where = { source: source.address, owner: ownerOf(owner), firstFactor: firstFactorOf(basis.proof) }
    return identities.further({ user, ...(isUserVerified && { isUserVerified }) }, where, rules)
  }

  /** @throws Denial */
  async #judged(signedIn: SignedIn, target: Target, outcome: Outcome): Promise<OpenAnswer | undefined> {
    const { audit } = this.#options
    const { protocol } = signedIn
    const fields = { ...whoFields(signedIn), protocol }
    switch (outcome.result) {
      case 'accepted':
        await recordFactor(audit, fields, outcome)
        if (outcome.hasFactor) signedIn.hasFactor = true
        return undefined
      case 'challenge':
        signedIn.factorChallenge = outcome.challenge
        return { result: 'factor_needed', target: canonicalName(target), challenge: roundOf(outcome) }
      case 'rejected': {
        const { reason, locks } = outcome
        const failure: FieldsOf<'auth.failure'> = { ...fields, method: METHOD, reason }
        await audit.record('auth.failure', failure)
        if (locks) await audit.record('auth.locked', { ...failure, duration: LOCKOUT_LIMITS.lockMs })
        throw new Denial(`${REFUSED}: ${reason}`, REFUSED)
      }
      default:
        throw new Denial(REFUSED)
    }
  }
}

/** No sign-in answers this dialogue: their owners are connections. */
const ownerOf = (token: string): string => `factor ${token}`
