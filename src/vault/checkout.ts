/**
 * Checkout and check-in of an account's secret under the default policy: for an hour at most, without locking
 * out others.
 */
import type { Account, Id, User } from '../model/objects.ts'
import type { Secret } from '../model/secret.ts'
import { MissingReferenceError } from '../store/errors.ts'
import type { Store } from '../store/store.ts'
import type { Vault } from './credentials.ts'

export const DEFAULT_MAX_DURATION_MS = 3_600_000
export const DEFAULT_EXCLUSIVE = false

export interface CheckedOut {
  checkoutId: Id
  login: string
  password?: Secret
  privateKey?: Secret
  passphrase?: Secret
  /** Milliseconds since the epoch. */
  expires: number
  /** Ids of the authorizations that allowed it. */
  authorizationIds: Id[]
}

/** Why a checkout or check-in was refused: for the audit; `not_out` covers foreign, expired, returned, unknown. */
export type CheckoutRefusal = 'not_allowed' | 'no_secret' | 'not_out'

export class CheckoutError extends Error {
  override readonly name = 'CheckoutError'
  readonly reason: CheckoutRefusal

  constructor(reason: CheckoutRefusal, message: string) {
    super(message)
    this.reason = reason
  }
}

export class Checkouts {
  readonly #store: Pick<Store, 'checkouts' | 'access'>
  readonly #vault: Vault

  constructor(store: Pick<Store, 'checkouts' | 'access'>, vault: Vault) {
    this.#store = store
    this.#vault = vault
  }

  /**
   * Hands the account's secret out. `now` in milliseconds since the epoch.
   * @throws CheckoutError `not_allowed` without an authorization, `no_secret` when the account has none
   */
  async checkout(user: Pick<User, 'id'>, account: Account, now: number): Promise<CheckedOut> {
    const authorizationIds = await this.#store.access.retrievalAuthorizations(user.id, account.id)
    if (authorizationIds.length === 0) {
      throw new CheckoutError(
        'not_allowed',
        'the account does not exist, or you may not check its secret out',
      )
    }
    const credentials = await this.#vault.credentials(account.id)
    if (credentials.length === 0) throw new CheckoutError('no_secret', 'no secret is stored for this account')
    const expires = now + DEFAULT_MAX_DURATION_MS
    const checkout = await this.#store.checkouts.create(
      { accountId: account.id, userId: user.id, begin: now, expires },
      DEFAULT_EXCLUSIVE,
    )
    const out: CheckedOut = {
      checkoutId: checkout.id,
      login: account.accountLogin,
      expires,
      authorizationIds,
    }
    for (const credential of credentials) {
      if (credential.type === 'password') out.password = credential.password
      else {
        out.privateKey = credential.privateKey
        if (credential.passphrase) out.passphrase = credential.passphrase
      }
    }
    return out
  }

  /**
   * Takes the account's secret back.
   * @throws CheckoutError `not_out`, the same whether the id is unknown, of somebody else, of another account,
   *   expired or returned
   */
  async checkin(
    user: Pick<User, 'id'>,
    account: Pick<Account, 'id'>,
    checkoutId: Id,
    now: number,
  ): Promise<void> {
    const checkout = await this.#store.checkouts.find(checkoutId)
    const isOut = checkout?.userId === user.id && checkout.accountId === account.id && now < checkout.expires
    if (!isOut) throw notOut()
    try {
      await this.#store.checkouts.end(checkoutId, now)
    } catch (error) {
      throw error instanceof MissingReferenceError ? notOut() : error
    }
  }
}

function notOut(): CheckoutError {
  return new CheckoutError('not_out', 'there is no such checkout of yours that is still out')
}
