/** A signed-in user, as the gate keeps it. */
import { randomBytes } from 'node:crypto'
import type { Reason, Source } from '../contract/gate.ts'
import type { Basis } from '../identity/basis.ts'
import type { ForwardedTicket } from '../identity/forwarded-ticket.ts'
import type { Login } from '../model/login.ts'
import type { Id } from '../model/objects.ts'
import type { Protocol } from '../model/rights.ts'
import type { Secret } from '../model/secret.ts'

/** A sign-in whose connection is still open. */
export interface SignedIn {
  userId: Id
  user: string
  login: Login
  /** Protocol of the front. */
  protocol: Protocol
  source: Source
  basis: Basis
  kept: KeptSecrets
  /** The reason given during the sign-in, for the target of `login`. */
  reason?: Reason
  /** Set for a sign-in by ticket: the target of `login` is the only one that may be opened. */
  isBound?: true
  /** The user was shown targets to choose from. */
  hasTargets?: true
  /** A second factor was proved on this connection, or by the sign-in that its ticket came of. */
  hasFactor?: true
  /** The token of its SSH key has checked a PIN or a finger. */
  isUserVerified?: true
  /** Id of the dialogue that waits for a second factor. */
  factorChallenge?: string
  /** Set when a stored credential has been handed out, or is about to be. */
  isSpent?: boolean
  /** Why the sign-in is no longer valid. */
  withdrawn?: string
}

/** Secrets of a signed-in user, kept until `leave`. */
export interface KeptSecrets {
  /** Password of the sign-in, kept if the user has account mappings. */
  password?: Secret
  /**
   * Credentials typed during the sign-in for the target of the login string; the first session uses them up.
   */
  answered?: { login?: string; password: Secret }
  /** Ticket of Kerberos that the client has forwarded. */
  forwarded?: ForwardedTicket
}

/** Returns a token that cannot be guessed. */
export function newToken(): string {
  return randomBytes(16).toString('base64url')
}
