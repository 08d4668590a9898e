/** Reasons of a refused bind, as servers tell them. */
import { type PasswordPolicyControl, PasswordPolicyError, type ResultCodeError } from 'ldapts'
import type { MethodRefusal } from '../method.ts'

/** Result codes (RFC 4511, appendix A). */
export const RESULT = {
  sizeLimitExceeded: 4,
  referral: 10,
  constraintViolation: 19,
  noSuchObject: 32,
  inappropriateAuthentication: 48,
  invalidCredentials: 49,
  insufficientAccessRights: 50,
  unwillingToPerform: 53,
} as const

/** Sub-codes of Active Directory, in the words of its refusal: `AcceptSecurityContext error, data 775, v4563`. */
const SUB_CODE = /\bdata ([0-9a-f]{1,8})\b/i
const BY_SUB_CODE: Readonly<Record<string, MethodRefusal | 'must_change'>> = {
  '525': 'unknown_user',
  '52e': 'wrong_password',
  '52f': 'not_allowed',
  '530': 'not_allowed',
  '531': 'not_allowed',
  '532': 'must_change',
  '533': 'account_disabled',
  '701': 'account_expired',
  '773': 'must_change',
  '775': 'account_locked',
}

/**
 * Returns the reason of a refused bind, or undefined if the server did not judge: it is busy, or refers to another one.
 * `must_change`: the password is right, and has to be replaced first.
 */
export function refusalOf(
  error: ResultCodeError,
  policy: PasswordPolicyControl,
): MethodRefusal | 'must_change' | undefined {
  switch (error.code) {
    case RESULT.invalidCredentials:
      return (
        byPolicy(policy) ??
        BY_SUB_CODE[SUB_CODE.exec(error.message)?.[1]?.toLowerCase() ?? ''] ??
        'wrong_password'
      )
    case RESULT.inappropriateAuthentication:
    case RESULT.noSuchObject:
      return 'wrong_password'
    case RESULT.constraintViolation:
      // OpenDJ and 389 DS for a locked account.
      return 'account_locked'
    case RESULT.unwillingToPerform:
    case RESULT.insufficientAccessRights:
      return 'not_allowed'
    default:
      return undefined
  }
}

/** Whether a bind that was accepted allows nothing but a change of the password (draft-behera-ldap-password-policy). */
export function mustChange(policy: PasswordPolicyControl): boolean {
  return policy.value?.error === PasswordPolicyError.ChangeAfterReset
}

function byPolicy({ value }: PasswordPolicyControl): MethodRefusal | undefined {
  if (value?.error === PasswordPolicyError.AccountLocked) return 'account_locked'
  if (value?.error === PasswordPolicyError.PasswordExpired) return 'password_expired'
  return undefined
}
