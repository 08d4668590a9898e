/**
 * Checkout and check-in of an account's secret, under the account's policy: for how long, and whether by one
 * user at a time.
 */
import {
  type Account,
  type Checkout,
  type CheckoutPolicy,
  DEFAULT_CHECKOUT_POLICY,
  type Id,
  type User,
} from '../model/objects.ts'
import type { Secret } from '../model/secret.ts'
import { DuplicateError, MissingReferenceError } from '../store/engine/errors.ts'
import type { Store } from '../store/store.ts'
import type { Credential } from './credentials.ts'
import type { Vault } from './vault.ts'

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

/**
 * Why a checkout or check-in was refused, for the audit; `not_out` covers another user's, expired, returned
 * and unknown checkouts.
 */
export type CheckoutRefusal = 'not_allowed' | 'no_secret' | 'checked_out' | 'not_out'

export class CheckoutError extends Error {
  override readonly name = 'CheckoutError'
  readonly reason: CheckoutRefusal

  constructor(reason: CheckoutRefusal, message: string) {
    super(message)
    this.reason = reason
  }
}

/** Reports sessions that hold an account; the gate implements it. */
export interface SessionHolds {
  holdFor(accountId: Id, otherThan: Id): boolean
}

type CheckoutStore = Pick<Store, 'checkouts' | 'checkoutPolicies' | 'access'>

export class Checkouts {
  readonly #store: CheckoutStore
  readonly #vault: Vault
  readonly #sessions: SessionHolds | undefined

  constructor(store: CheckoutStore, vault: Vault, sessions?: SessionHolds) {
    this.#store = store
    this.#vault = vault
    this.#sessions = sessions
  }

  /**
   * Returns the account's secret. `now` in milliseconds since the epoch; `apiKey`: the key that asks in the
   * user's name.
   * @throws CheckoutError `not_allowed` without an authorization, `no_secret` if the account has none,
   * `checked_out` if its policy locks it for another checkout
   */
  async checkout(
    user: Pick<User, 'id'>,
    account: Account,
    now: number,
    apiKey?: string,
  ): Promise<CheckedOut> {
    const authorizationIds = await this.#store.access.retrievalAuthorizations(user.id, account.id)
    if (authorizationIds.length === 0) {
      throw new CheckoutError(
        'not_allowed',
        'the account does not exist, or you may not check its secret out',
      )
    }
    const credentials = await this.#vault.credentials(account.id)
    if (credentials.every(({ type }) => type === 'enable')) {
      wipe(credentials)
      throw new CheckoutError('no_secret', 'no secret is stored for this account')
    }
    const policy = await this.#store.checkoutPolicies.find(
      account.checkoutPolicyId ?? DEFAULT_CHECKOUT_POLICY,
    )
    const checkout = await this.#begin(user, account, policy, now, apiKey).catch((error: unknown) => {
      wipe(credentials)
      throw error
    })
    const out: CheckedOut = {
      checkoutId: checkout.id,
      login: account.accountLogin,
      expires: checkout.expires,
      authorizationIds,
    }
    for (const credential of credentials) {
      if (credential.type === 'enable') credential.password.wipe()
      else if (credential.type === 'password') out.password = credential.password
      else {
        out.privateKey = credential.privateKey
        if (credential.passphrase) out.passphrase = credential.passphrase
      }
    }
    return out
  }

  async #begin(
    user: Pick<User, 'id'>,
    account: Account,
    policy: CheckoutPolicy | undefined,
    now: number,
    apiKey: string | undefined,
  ): Promise<Checkout> {
    // A rule that cannot be evaluated denies.
    if (!policy) throw new CheckoutError('not_allowed', 'the checkout policy of the account is gone')
    const isHeld = () => policy.enableLock && this.#sessions?.holdFor(account.id, user.id)
    if (isHeld()) throw checkedOut()
    const expires = now + policy.maxDuration * 1000
    const begun = {
      accountId: account.id,
      userId: user.id,
      begin: now,
      expires,
      ...(apiKey !== undefined && { apiKey }),
    }
    const checkout = await this.#create(begun, policy.enableLock)
    if (!isHeld()) return checkout
    // A session has begun meanwhile.
    await this.#store.checkouts.end(checkout.id, now)
    throw checkedOut()
  }

  async #create(checkout: Omit<Checkout, 'id'>, isExclusive: boolean): Promise<Checkout> {
    try {
      return await this.#store.checkouts.create(checkout, isExclusive)
    } catch (error) {
      if (!(error instanceof DuplicateError)) throw error
      throw checkedOut()
    }
  }

  /**
   * Checks the account's secret in.
   * @throws CheckoutError `not_out`, the same for an id that is unknown, another user's, another account's,
   * expired or returned
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

function wipe(credentials: readonly Credential[]): void {
  for (const credential of credentials) {
    if (credential.type !== 'ssh_key') credential.password.wipe()
    else {
      credential.privateKey.wipe()
      credential.passphrase?.wipe()
    }
  }
}

function checkedOut(): CheckoutError {
  return new CheckoutError('checked_out', 'the account is in use, and its policy locks it until that is over')
}

function notOut(): CheckoutError {
  return new CheckoutError('not_out', 'there is no such checkout of yours that is still out')
}
