/**
 * What CredSSP needs of a mechanism that proves who somebody is: the shape of the GSS-API (RFC 2743) without its
 * names. NTLM is one; Kerberos takes the same seat.
 */
import type { NtlmProof } from '../../../src/model/ntlm-auth.ts'

/** What both sides have once it is proven: each message is sealed with a number, so order counts. */
export interface SecurityContext {
  wrap(plain: Uint8Array): Uint8Array
  /** Undefined: the peer has not sealed these bytes, or not as the next ones. */
  unwrap(wrapped: Uint8Array): Uint8Array | undefined
  /** Signs the list of mechanisms that SPNEGO has agreed on, in DER. */
  signMechanisms(list: Uint8Array): Uint8Array
  /** Whether the peer has signed that list. */
  areMechanismsSigned(list: Uint8Array, signature: Uint8Array): boolean
}

/** The side that wants to be let in. */
export interface Initiator {
  /** The DER encoding of its object identifier, tag and length included. */
  readonly oid: Uint8Array
  /** The first token. */
  start(): Uint8Array
  /** The token that answers the peer's; undefined: none is needed. Throws MalformedError and CredSspError. */
  step(token: Uint8Array): Uint8Array | undefined
  /** There as soon as our side has all that it needs. */
  readonly context: SecurityContext | undefined
  /** Nothing more has to come of the peer. */
  readonly isComplete: boolean
}

/** `judge`: somebody who keeps secrets has to answer by `judged`. */
export type AcceptorStep =
  | { kind: 'token'; token: Uint8Array }
  | { kind: 'judge'; proof: NtlmProof }
  | { kind: 'refused' }
  | { kind: 'in'; context: SecurityContext; token?: Uint8Array }

/** The side that lets in. */
export interface Acceptor {
  readonly oid: Uint8Array
  /** Throws MalformedError and CredSspError. */
  step(token: Uint8Array): AcceptorStep
  /** The session's base key of a proof that was right, undefined for a wrong one. Throws as `step`. */
  judged(key: Uint8Array | undefined): AcceptorStep
}
