/** Requests to sign in and their outcomes. */
import type { AccountingClass, Id, User } from '../model/objects.ts'
import type { Secret } from '../model/secret.ts'
import type { AuthorityFlaw } from './authorities.ts'
import type { OfferedKey } from './certificate.ts'
import type { ForwardedTicket } from './forwarded-ticket.ts'
import type { MethodPrompt, MethodRefusal } from './methods/method.ts'
import type { RoundForm } from './round-form.ts'
import type { SignedRequest } from './signature.ts'
import type { StandingFlaw } from './standing.ts'

/** A ticket of Kerberos, or the word of a provider, which its method has judged. */
export interface ShownProof {
  method: 'negotiate' | 'gssapi-with-mic' | 'provider'
  /** A ticket that came with it; closed unless the sign-in is accepted. */
  forwarded?: ForwardedTicket
}

/** A second factor of a user that has signed in before. */
export interface FurtherProof {
  method: 'second_factor'
}

/** A proof that the chain judges. */
export type Proof =
  /** Begins with a browser, where the name's domain has persons that sign in there only. */
  | { method: 'browser' }
  | { method: 'password' | 'keyboard-interactive'; password: string }
  | {
      method: 'publickey'
      /** Blob of the key or certificate, as offered. */
      key: Uint8Array
      /** Absent if the client only queries whether the key is acceptable. */
      signed?: Pick<SignedRequest, 'data' | 'signature'>
    }

export interface SignIn<P = Proof> {
  /** The user's name: USER of the login string. */
  user: string
  /** The user-name field as the client sent it, whole: a signature covers it. */
  login: string
  /** The client's address. */
  source: string
  /** Names the connection, or what else a dialogue belongs to: answers from elsewhere are rejected. */
  owner?: string
  /** Protocol of a client that can wait while its person signs in in a browser. */
  waitsBy?: string
  proof: P
}

/** A sign-in that waits for answers, begins with a ticket, or goes on with a second factor. */
export type Begun = SignIn<Proof | ShownProof | FurtherProof>

/** Why a sign-in was refused: for the audit log, never for the client. */
export type Refusal =
  | 'used_signature'
  | 'unknown_user'
  | 'locked'
  | 'method_not_allowed'
  | 'wrong_password'
  | 'wrong_ticket'
  /** The ticket is of another person than the one that the login string names. */
  | 'other_name'
  | 'unknown_key'
  | 'bad_signature'
  | 'busy'
  /** The directory has accepted a person to whom no mapping gives anything. */
  | 'unmapped'
  /** Answers to a challenge that has ended, or from elsewhere. */
  | 'no_challenge'
  | 'too_many_rounds'
  | 'wrong_code'
  /** A one-time code that has signed in before, or an older one. */
  | 'used_code'
  /** Wrong codes in a row, from whichever addresses. */
  | 'too_many_codes'
  | 'unknown_security_key'
  | 'wrong_security_key'
  /** Its count of signatures has gone back: another device has the same key. */
  | 'copied_security_key'
  /** A certificate that was made here, and has been withdrawn, or is not this user's. */
  | 'withdrawn_certificate'
  /** The person has said in the browser that the waiting client is not theirs. */
  | 'refused_in_browser'
  | AuthorityFlaw
  | StandingFlaw
  | MethodRefusal

/** A sign-in that succeeded. */
export interface Proved {
  user: User
  /** Names of the external authentications that have judged it; absent if none has. */
  by?: readonly string[]
  /** Names of those that have judged a second factor of a local user, beside `by`. */
  second?: readonly string[]
  /** Class attributes of the servers that judged, for the accounting of sessions. */
  classes?: readonly AccountingClass[]
  /** Id of the session at the provider of a federated sign-in, with which all ends that rests on the sign-in. */
  providerSession?: Id
  /** Set if no server could judge, and an earlier proof has counted. */
  isOffline?: true
  /** Recovery codes that are left; absent if none was used up. */
  recoveryCodesLeft?: number
  /** Set if no one-time code was asked for, since one was right from the same address. */
  isFactorRemembered?: boolean
  /** Set if the token of the SSH key has checked a PIN or a finger. */
  isUserVerified?: boolean
  /** The key that has signed, if one has. */
  key?: OfferedKey
  /** Set if a code was right, or an authenticator was enrolled. */
  hasFactor?: true
  /** Set if all factors were proved at an earlier sign-in: for a certificate that was made here, or by a browser. */
  isProvedBefore?: boolean
}

export type Outcome =
  | ({ result: 'accepted' } & Proved)
  | { result: 'key_acceptable' }
  /** `locks`: this failure starts a lock-out, which has its own event. */
  | { result: 'rejected'; reason: Refusal; locks: boolean }
  /** A further round; `challenge` is the id that the answers repeat. */
  | {
      result: 'challenge'
      challenge: string
      message: string
      uri?: string
      /** Address of a page where the person goes on; the answers are none, and wait for that. */
      link?: string
      hint?: string
      form?: RoundForm
      /** Why what was answered before counts as a failure, if it does. */
      failure?: Refusal
      prompts: readonly MethodPrompt[]
    }
  /** No server could judge, which counts as no failure. `server`: name of the external authentication. */
  | { result: 'unavailable'; server: string; reason: string; isHidden: boolean }

/** The verdict on an answer. */
export interface Answered {
  outcome: Outcome
  /** The sign-in as it was begun, without its password; absent if there is no such dialogue. */
  request?: Begun
  /** Password of the first round, once all is accepted; the receiver wipes it. */
  password?: Secret
}
