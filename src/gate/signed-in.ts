/** A person who has signed in, as the gate keeps them. */
import type { Source } from '../contract/gate.ts'
import type { Basis } from '../identity/basis.ts'
import type { Login } from '../model/login.ts'
import type { Id } from '../model/objects.ts'
import type { Protocol } from '../model/rights.ts'
import type { Secret } from '../model/secret.ts'

/** Somebody who has signed in on a connection that is still there. */
export interface SignedIn {
  userId: Id
  user: string
  login: Login
  /** Of the front. */
  protocol: Protocol
  source: Source
  basis: Basis
  kept: KeptSecrets
  /** They came with a ticket: the target of `login` is the only one that they may open. */
  isBound?: true
  /** They were shown targets that they may choose from. */
  hasTargets?: true
  /** Why they are signed in no longer. */
  withdrawn?: string
}

/** What a signed-in person's secrets are, until they leave. */
export interface KeptSecrets {
  /** What they signed in with, when a target may be there that they are mapped to. */
  password?: Secret
  /** What they answered at the sign-in for the target of their login string: taken by the first session. */
  answered?: { login?: string; password: Secret }
}
