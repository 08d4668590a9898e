/**
 * The stored credentials of a session, which leave the gate when its target's host key is accepted: those of one
 * session for each sign-in.
 */
import type { SessionCredential } from '../contract/gate.ts'
import { Denial } from './denial.ts'
import type { SignedIn } from './signed-in.ts'

/** Shown when one more target with a stored credential is asked for. */
export const SPENT = 'one sign-in opens one target: sign in again'

export class HandOut {
  readonly #signedIn: Pick<SignedIn, 'isSpent'>
  readonly credentials: SessionCredential[]
  #isClaimed = false
  #isAccepted = false

  constructor(signedIn: Pick<SignedIn, 'isSpent'>, credentials: SessionCredential[]) {
    this.#signedIn = signedIn
    this.credentials = credentials
  }

  /**
   * Claims the sign-in for this session, before its host key is judged: a session that would get nothing pins no key
   * either. @throws Denial if another session of the sign-in, or another request of this one, has claimed it
   */
  claim(): void {
    if (this.#isClaimed) throw new Denial('the host key of this session is being judged')
    // A session without a credential takes none from another.
    if (this.credentials.length > 0) {
      if (this.#signedIn.isSpent) throw new Denial(SPENT)
      this.#signedIn.isSpent = true
    }
    this.#isClaimed = true
  }

  /** Claims the sign-in for its forwarded ticket, once the host key is accepted. @throws Denial as `claim` */
  claimTicket(): void {
    if (!this.#isAccepted) throw new Denial('the host key of this session is not accepted')
    if (this.credentials.length > 0) return
    if (this.#signedIn.isSpent) throw new Denial(SPENT)
    this.#signedIn.isSpent = true
  }

  /** Hands the credentials out: the host key is accepted. */
  take(): SessionCredential[] {
    this.#isAccepted = true
    return this.credentials
  }

  /** Gives the claim of the same request up: the host key was not accepted. */
  release(): void {
    if (this.credentials.length > 0) this.#signedIn.isSpent = false
    this.#isClaimed = false
  }
}
