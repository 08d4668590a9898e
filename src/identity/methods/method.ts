/**
 * Methods of sign-in whose answer comes from a server: LDAP, RADIUS, TACACS+, Kerberos, OpenID Connect. Each is one folder beside
 * this file, takes a proof and answers; it knows neither fronts nor users, and decides no right. What a front can
 * show decides which methods it offers.
 */
import type { Delegated } from '../../kerberos/delegated.ts'
import type { HeldTicket } from '../../kerberos/requests.ts'
import type { Secret } from '../../model/secret.ts'

/** One attempt to sign in at a server. */
export interface MethodAttempt {
  /** Name as the server knows it: without the authentication domain. */
  userName: string
  /** Address of the client. */
  source: string
  /** Id of the connection or request, for what a server wants to tell attempts apart. */
  attempt: string
}

export interface MethodPrompt {
  text: string
  echo: boolean
}

/** Why a server refused: for the audit log, and where it can be mended, for the user who proved the password. */
export const METHOD_REFUSALS = [
  'wrong_password',
  'unknown_user',
  'account_disabled',
  'account_expired',
  'account_locked',
  'password_expired',
  'not_allowed',
] as const
export type MethodRefusal = (typeof METHOD_REFUSALS)[number]

export type MethodAnswer =
  /** `classes`: attributes that the server wants back with the accounting of the sessions. */
  | { result: 'accepted'; person: Person; classes?: readonly Uint8Array[] }
  | { result: 'rejected'; reason: MethodRefusal }
  /** A further round: `state` goes back with the answers, once. */
  | {
      result: 'challenge'
      message: string
      prompts: MethodPrompt[]
      state: MethodState
      /** The server's question that the password was the answer to, where it asked for one. */
      answered?: string
      /** Set if the answers set a password, and guess none. */
      setsPassword?: true
    }
  /** No server could judge. Never counts as a wrong password. `reason` is for administrators. */
  | { result: 'unavailable'; reason: string }

/** State of a dialogue, opaque to all but its method; `close` when no answer will come. */
export interface MethodState {
  close(): void
}

/** Attributes of a person, as read from the server once they are proved. */
export interface Person {
  /** The server's stable id of the person, such as entryUUID or objectGUID, where it has one. */
  stableId?: string
  /** Name as the server spells it. */
  userName: string
  displayName?: string
  email?: string
  language?: string
  /** Names or DNs, whole, of the groups. */
  groups: string[]
  /** Lines in OpenSSH's authorized_keys form, without options. */
  publicKeys?: string[]
}

/** Standing of a person at the server, found without their password. */
export type PersonLook =
  | { result: 'present'; person: Person }
  | { result: 'absent'; reason: MethodRefusal }
  | { result: 'unavailable'; reason: string }

/** Form of a token: in SPNEGO, as browsers show it, or bare, as over SSH. */
export type TicketForm = 'spnego' | 'bare'

/** A ticket that was accepted. */
export interface ShownTicket {
  userName: string
  /** Token for the client, which proves us; absent if the client does not ask for it. */
  answer?: Uint8Array
  /** Whether the client has signed this message, as the first one. */
  isSigned(message: Uint8Array, mic: Uint8Array): boolean
  /** Ticket by which we may act for the client; its key is the caller's to wipe. Never from SPNEGO. */
  delegated?: Delegated
  /** Wipes the keys of the context. */
  close(): void
}

/** The verdict on an access token. `reason` is for administrators. */
export type BearerAnswer =
  | {
      result: 'accepted'
      person: Person
      scopes: string[]
      isMultiFactor: boolean
      /** When the token ends, in milliseconds since the epoch. */
      ends: number
    }
  | { result: 'rejected' | 'unavailable'; reason: string }

/** A ticket could not be judged, for a cause on our side: it counts as no failure. The message is for administrators. */
export class UnjudgedError extends Error {
  override name = 'UnjudgedError'
}

/** One step of a trial by an administrator. Holds no secret. */
export interface TestStep {
  step: 'reached' | 'tls' | 'bound' | 'user_found' | 'groups' | 'signed_in' | 'answered'
  ok: boolean
  /** Says the finding; for a failure: the expected, the actual, and the remedy. */
  detail: string
  /** Groups of the person, where this step has found them. */
  groups?: readonly string[]
}

export interface TestRequest {
  /** Absent: only the server and the service's own account are tried. */
  userName?: string
  password?: Secret
}

export interface SignInMethod {
  /** Proves a password. An empty one is refused before anything is sent. */
  prove(attempt: MethodAttempt, password: Secret, signal: AbortSignal): Promise<MethodAnswer>
  /** Goes on with a dialogue, after `challenge`. */
  answer(
    attempt: MethodAttempt,
    state: MethodState,
    answers: readonly Secret[],
    signal: AbortSignal,
  ): Promise<MethodAnswer>
  /** Looks a person up; absent where the protocol has no way. */
  look?(userName: string, signal: AbortSignal): Promise<PersonLook>
  /**
   * Judges a ticket that the client shows for this kind of service; absent where the protocol has none.
   * @throws UnjudgedError if the fault is ours, else Error; their messages are for administrators
   */
  accept?(token: Uint8Array, service: string, form: TicketForm): ShownTicket
  /** Whether there is a key for tickets of this kind of service; absent where the protocol has none. */
  takes?(service: string): boolean
  /**
   * Gets a ticket for a service by one that the client has delegated; absent where the protocol has none.
   * @throws KdcRefusal, Error if no server answers
   */
  ticketFor?(first: HeldTicket, service: readonly string[], signal: AbortSignal): Promise<HeldTicket>
  /** Judges an access token that the client at this address shows; absent where there are none. */
  bear?(token: string, source: string): Promise<BearerAnswer>
  /** Tries the server step by step, and stops after the first that fails. */
  test(request: TestRequest, signal: AbortSignal): Promise<TestStep[]>
  /** Closes all connections. */
  close(): Promise<void>
}
