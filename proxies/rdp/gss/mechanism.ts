/**
 * Interface of an authentication mechanism for CredSSP, modelled on the GSS-API (RFC 2743). NTLM and
 * Kerberos implement it.
 */
import type { NtlmProof } from '../../../src/model/ntlm-auth.ts'

/** Protects messages after the authentication. Messages are sealed by sequence number, so order matters. */
export interface SecurityContext {
  wrap(plain: Uint8Array): Uint8Array
  /** Returns undefined if the peer has not sealed these bytes, or not as the next ones. */
  unwrap(wrapped: Uint8Array): Uint8Array | undefined
  /** Signs the list of mechanisms that SPNEGO has agreed on, in DER. */
  signMechanisms(list: Uint8Array): Uint8Array
  /** Reports whether the peer has signed that list. */
  areMechanismsSigned(list: Uint8Array, signature: Uint8Array): boolean
}

/** The side that authenticates itself. */
export interface Initiator {
  /** The DER encoding of its object identifier, tag and length included. */
  readonly oid: Uint8Array
  /** Returns the first token. */
  start(): Uint8Array
  /** Returns the next token, or undefined if none is needed. Throws MalformedError and CredSspError. */
  step(token: Uint8Array): Uint8Array | undefined
  /** Set once this side has everything it needs. */
  readonly context: SecurityContext | undefined
  /** No more tokens are expected from the peer. */
  readonly isComplete: boolean
}

/** `judge`: the caller must check the proof and call `judged`. */
export type AcceptorStep =
  | { kind: 'token'; token: Uint8Array }
  | { kind: 'judge'; proof: NtlmProof }
  | { kind: 'refused' }
  | { kind: 'in'; context: SecurityContext; token?: Uint8Array }

/** The side that checks the authentication. */
export interface Acceptor {
  readonly oid: Uint8Array
  /** Throws MalformedError and CredSspError. */
  step(token: Uint8Array): AcceptorStep
  /** Continues with the session base key of a correct proof, or undefined for a wrong one. */
  judged(key: Uint8Array | undefined): AcceptorStep
}
