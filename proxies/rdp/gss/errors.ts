/** What ends a CredSSP exchange other than malformed bytes, told apart for users and for the audit log. */

/** It is the account that is not let in. */
export const ACCOUNT_REASONS = [
  /** Wrong user or password: which of the two, nobody says. */
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
  /** The connection ended in place of an answer about it. */
  'ended',
] as const

export const REFUSAL_REASONS = [
  ...ACCOUNT_REASONS,
  /** NTLM is switched off, there or for this account (Protected Users). */
  'ntlm_off',
  'delegation',
  'no_authority',
  'clock',
  /** Something between the peers, or a key that is not the one of the TLS connection. */
  'altered',
  /** A peer that would not protect the password. */
  'weak',
  'other',
] as const

export type RefusalReason = (typeof REFUSAL_REASONS)[number]

export class CredSspError extends Error {
  override name = 'CredSspError'
  readonly reason: RefusalReason
  /** The peer's NTSTATUS, where it has sent one. */
  readonly status: number | undefined

  constructor(reason: RefusalReason, message: string, status?: number) {
    super(message)
    this.reason = reason
    this.status = status
  }
}
