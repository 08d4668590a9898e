/** Errors that end a CredSSP exchange, except malformed bytes, by reason for users and the audit log. */

/** The target refuses the account. */
export const ACCOUNT_REASONS = [
  /** Wrong user name or password; the target does not report which. */
  'password',
  'password_expired',
  'password_must_change',
  'locked',
  'disabled',
  'account_expired',
  'hours',
  'workstation',
  'no_right',
  'restricted',
  /** The connection ended without an answer about the account. */
  'ended',
] as const

export const REFUSAL_REASONS = [
  ...ACCOUNT_REASONS,
  /** NTLM is disabled, on the target or for this account (Protected Users). */
  'ntlm_off',
  /** The target does not accept the Kerberos ticket, or has no Kerberos. */
  'ticket',
  'delegation',
  'no_authority',
  'clock',
  /** A man in the middle, or a key other than that of the TLS connection. */
  'altered',
  /** The peer would not protect the password. */
  'weak',
  'other',
] as const

export type RefusalReason = (typeof REFUSAL_REASONS)[number]

export class CredSspError extends Error {
  override name = 'CredSspError'
  readonly reason: RefusalReason
  /** The peer's NTSTATUS, if it sent one. */
  readonly status: number | undefined

  constructor(reason: RefusalReason, message: string, status?: number) {
    super(message)
    this.reason = reason
    this.status = status
  }
}
