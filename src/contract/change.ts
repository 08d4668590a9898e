/**
 * Changes of secrets at targets, as the broker asks a changer for them (proxies/rotation): plain data of one job,
 * with no database, master key or API behind it.
 */
import type { CageReport } from '../confine/report.ts'

/** A target, as the broker knows it. */
export interface ChangeTarget {
  host: string
  port: number
  /** How the target is reached, if the plugin knows several ways: a service's protocol. */
  protocol?: string
  /** As the domain has them, checked by the plugin's own row (src/model/change-plugins.ts). */
  parameters: Readonly<Record<string, string | number | boolean>>
  trust: Trust
}

/** Proofs that a target has to give before it gets a secret. */
export interface Trust {
  /** SSH: blobs of the pinned host keys (RFC 4253 6.6), base64. Without one nothing is sent. */
  hostKeys?: readonly string[]
  /** SSH: the proof of a host key instead of a pin; the changer asks the broker, which judges. */
  hostKeyPolicy?: 'ca' | 'dns'
  /** SSH: authorities for host keys, of the connection policy. */
  hostAuthorities?: readonly string[]
  /** TLS: certificates of authorities, PEM; the system's if absent. */
  certificates?: string
}

export type NewSecret =
  | { type: 'password'; password: string }
  /** The secret of the privileged mode of network devices. */
  | { type: 'enable'; password: string }
  /** `privateKey` in OpenSSH's form, `publicKey` as a line of authorized_keys. */
  | { type: 'ssh_key'; privateKey: string; publicKey: string }

/** The secret of an account, with which a plugin signs in. */
export type SignInSecret =
  | { type: 'password'; password: string }
  | { type: 'ssh_key'; privateKey: string; passphrase?: string }

export interface SignIn {
  login: string
  secret: SignInSecret
  /** The account's secret for the privileged mode of network devices, if one is stored. */
  enable?: string
}

export type Verdict = 'valid' | 'invalid'

export interface SecretChange {
  /** The account with the secret that is stored now: it need not be valid, if an administrator makes the change. */
  account: SignIn
  /** Signs in and makes the change: the account itself, or an administrator. */
  by: SignIn
  isAdministrator: boolean
  next: NewSecret
}

/** Why a job failed; a message never holds a secret. */
export const CHANGE_ERRORS = [
  /** No connection, or it ended early. */
  'unreachable',
  /** The host key or certificate is none that is trusted: nothing was sent. */
  'untrusted',
  /** The target does not let `by` in. */
  'refused_sign_in',
  /** The target's own rules refuse the new secret. */
  'refused_password',
  /** The account that signed in may not do it. */
  'not_permitted',
  /** An unknown prompt, another language, a malformed message, too much of it. */
  'unexpected_answer',
  'timeout',
  /** The parameters or the kind of secret do not fit the target. */
  'unsupported',
  /** Anything else after which the state is unknown. */
  'unclear',
] as const
export type ChangeErrorCode = (typeof CHANGE_ERRORS)[number]

/** An old secret that may still be valid, and the account with its new secret. */
export interface RetiredSecret {
  account: SignIn
  by: SignIn
  isAdministrator: boolean
  old: SignInSecret
}

/** Version of the messages between the broker and a changer. */
export const CHANGER_VERSION = 2

export type ChangeJob =
  | { work: 'verify'; plugin: string; target: ChangeTarget; as: SignIn }
  | { work: 'change'; plugin: string; target: ChangeTarget; change: SecretChange }
  | { work: 'retire'; plugin: string; target: ChangeTarget; retired: RetiredSecret }

/** From the broker to a changer. */
export type ToChanger =
  | { type: 'begin'; version: number }
  | { type: 'job'; id: number; job: ChangeJob; timeoutMs: number }
  | { type: 'cancel'; id: number }
  /** Judgement of a host key; `refusal`: why it is not trusted. */
  | { type: 'judged'; id: number; question: number; refusal?: string }

/** From a changer to the broker. */
export type FromChanger =
  | { type: 'ready'; version: number; cage: CageReport }
  /** Asks whether a host key is trusted, for a target whose policy names no pinned ones. `key`: base64. */
  | { type: 'host_key'; id: number; question: number; key: string }
  /** A fault was caught that may have left more behind than its job: the process is to get no other job. */
  | { type: 'faulted' }
  | { type: 'done'; id: number; verdict?: Verdict }
  | { type: 'failed'; id: number; code: ChangeErrorCode; message: string }
