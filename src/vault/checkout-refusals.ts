/** Refusals of checkouts, extensions and check-ins. */
import type { Checkout, Id } from '../model/objects.ts'

/**
 * Why a checkout, extension or check-in was refused, for the audit; `not_out` covers another user's, expired,
 * returned and unknown checkouts.
 */
export type CheckoutRefusal =
  | 'not_allowed'
  | 'no_secret'
  | 'checked_out'
  | 'too_long'
  | 'not_extendable'
  | 'approval_required'
  | 'second_factor_required'
  | 'no_reason'
  | 'not_out'
  | 'changing'

export class CheckoutError extends Error {
  override readonly name = 'CheckoutError'
  readonly reason: CheckoutRefusal
  /** When an account that is checked out will be free at the latest, in milliseconds since the epoch. */
  readonly until: number | undefined
  /** More for the audit alone. */
  readonly told: string | undefined

  constructor(reason: CheckoutRefusal, message: string, until?: number, told?: string) {
    super(message)
    this.reason = reason
    this.until = until
    this.told = told
  }
}

export function notAllowed(isOutside: boolean): CheckoutError {
  return new CheckoutError(
    'not_allowed',
    'the account does not exist, or you may not check its secret out',
    undefined,
    isOutside ? 'it is outside the timeframes of the authorization' : undefined,
  )
}

export function approvalRequired(): CheckoutError {
  return new CheckoutError(
    'approval_required',
    'approvers have to agree first: ask with POST /approvals, or sallyport approvals request',
  )
}

export class FactorRequiredError extends CheckoutError {
  /** The authorizations that require it. */
  readonly authorizationIds: readonly Id[]

  constructor(authorizationIds: readonly Id[]) {
    super('second_factor_required', 'the authorization requires a second factor')
    this.authorizationIds = authorizationIds
  }
}

export function checkedOut(now: number, out: readonly Checkout[]): CheckoutError {
  const until = Math.max(now, ...out.map(({ expires }) => expires))
  const text = new Date(until).toISOString()
  return new CheckoutError(
    'checked_out',
    `the account is checked out, and its policy locks it until ${text}, or until it is returned`,
    until,
  )
}

export function heldBySession(): CheckoutError {
  return new CheckoutError(
    'checked_out',
    "another user's session uses the account, and its policy locks it until that ends",
  )
}

export function changing(): CheckoutError {
  return new CheckoutError('changing', 'the secret of the account is being changed: try again in a moment')
}

export function notOut(): CheckoutError {
  return new CheckoutError('not_out', 'there is no such checkout of yours that is still out')
}
