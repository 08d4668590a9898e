/**
 * The interface of the plugins that change secrets at targets, one file each. They parse what hostile targets send, so they
 * run in processes of their own (changer.ts), and know one job's data only.
 */
import type { Buffer } from 'node:buffer'
import type {
  ChangeErrorCode,
  ChangeTarget,
  RetiredSecret,
  SecretChange,
  SignIn,
  Verdict,
} from '../../src/contract/change.ts'
import { wordsOf } from '../wording/errors.ts'

/** A target as a plugin gets it. */
export interface PluginTarget extends ChangeTarget {
  /** Returns why the host key (RFC 4253 6.6) is not trusted, or undefined if it is. Absent if the key is pinned. */
  judgeHostKey?: (key: Buffer) => Promise<string | undefined>
}

export interface ChangePlugin {
  /**
   * Signs in with that secret and leaves. Throws ChangeError (`unreachable`, `unclear`, …) when it cannot be known;
   * only the target's plain refusal of the secret is `invalid`.
   */
  verify(target: PluginTarget, as: SignIn, signal: AbortSignal): Promise<Verdict>
  /**
   * Sets `next` for the account, signed in as `by`. After a rejection the state at the target is unknown, except by the
   * codes `untrusted`, `refused_sign_in`, `refused_password`, `not_permitted` and `unsupported`: nothing was changed.
   * When the signal aborts, all connections are ended at once.
   */
  change(target: PluginTarget, change: SecretChange, signal: AbortSignal): Promise<void>
  /**
   * Withdraws the secret that `change` replaced and left valid beside the new one, as a line of authorized_keys. Called
   * after the new one was verified; absent if a change replaces the old secret at once.
   */
  retire?(target: PluginTarget, retired: RetiredSecret, signal: AbortSignal): Promise<void>
}

/** `message` is for administrators: lower case, without a secret; the target's own text goes through `said`. */
export class ChangeError extends Error {
  override name = 'ChangeError'
  readonly code: ChangeErrorCode

  constructor(code: ChangeErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

const MAX_SAID = 200

/** Returns the target's text for a message: bounded, without control characters, and without these secrets. */
export function said(text: string, ...secrets: readonly string[]): string {
  const hidden = secrets
    .filter((secret) => secret !== '')
    .reduce((rest, secret) => rest.replaceAll(secret, '[secret]'), text)
  return wordsOf(hidden.trim().slice(0, MAX_SAID))
}

/** Returns the error of a job that was ended from outside, as by its time. */
export function timedOut(): ChangeError {
  return new ChangeError('timeout', 'the target did not answer in time')
}
