/**
 * Checkout and check-in of an account's secret, under the account's policy: for how long, and whether by one
 * user at a time.
 */
import {
  type Account,
  type ApiKey,
  type Checkout,
  type CheckoutPolicy,
  DEFAULT_CHECKOUT_POLICY,
  type Id,
  type User,
} from '../model/objects.ts'
import type { Secret } from '../model/secret.ts'
import { ChangedError, DuplicateError, MissingReferenceError } from '../store/engine/errors.ts'
import type { Store } from '../store/store.ts'
import { extendableUntil, type Ground, type GroundsStore, groundOf, untilOf } from './checkout-grounds.ts'
import {
  approvalRequired,
  CheckoutError,
  changing,
  checkedOut,
  heldBySession,
  notAllowed,
  notOut,
} from './checkout-refusals.ts'
import { type Credential, wipe as wipeOne } from './credentials.ts'
import { KeyRewriter } from './formats/rewriter.ts'
import type { KeyFormat } from './formats/write.ts'
import type { Vault } from './vault.ts'

export interface CheckoutWish {
  /** Seconds. */
  duration?: number
  comment?: string
  ticket?: string
  /** Form of the key's file; as it is stored, unless this or the passphrase is given. */
  keyFormat?: KeyFormat
  /** To encrypt the key with. */
  passphrase?: string
}

export interface CheckedOut {
  checkoutId: Id
  login: string
  password?: Secret
  privateKey?: Secret
  passphrase?: Secret
  /** Milliseconds since the epoch. */
  begin: number
  expires: number
  /** Ids of the authorizations that allowed it. */
  authorizationIds: Id[]
  /** Id of the approval that it needed. */
  approval?: Id
}

/** Reports sessions that hold an account; the gate implements it. */
export interface SessionHolds {
  holdFor(accountId: Id, otherThan: Id): boolean
}

/** Reports changes of secrets in progress: none that is about to be replaced is handed out. */
export interface ChangesInProgress {
  isChanging(accountId: Id): boolean
  /** Waits some time for the end of one; returns whether it has come. */
  settled(accountId: Id): Promise<boolean>
  /** Lets those begin that wait for a checkout which has ended. */
  freed(accountId: Id): Promise<void>
}

type Asking = Pick<ApiKey, 'id' | 'keyName' | 'expirationDate'>

interface Beginning extends Pick<CheckoutWish, 'duration' | 'comment' | 'ticket'> {
  apiKey?: Asking
  /** Revision of the account's secret that ended what rested on an earlier one. */
  severed: number
}

type CheckoutStore = GroundsStore & Pick<Store, 'amongRights' | 'checkouts' | 'checkoutPolicies'>

export class Checkouts {
  readonly #store: CheckoutStore
  readonly #vault: Vault
  readonly #sessions: SessionHolds | undefined
  readonly #secretChanges: ChangesInProgress | undefined
  readonly #rewriter = new KeyRewriter()
  readonly #changes = new Map<Id, Promise<unknown>>()

  constructor(
    store: CheckoutStore,
    vault: Vault,
    sessions?: SessionHolds,
    secretChanges?: ChangesInProgress,
  ) {
    this.#store = store
    this.#vault = vault
    this.#sessions = sessions
    this.#secretChanges = secretChanges
  }

  /**
   * Returns the account's secret, and stores the checkout before. `clock` in milliseconds since the epoch; `apiKey`: the
   * key that asks in the user's name; `hasFactor`: the user has proved a second factor. A key is rewritten before the checkout begins, so that one that is over by then is
   * none.
   * @throws RewriterBusyError, RewriteError, FactorRequiredError, CheckoutError `not_allowed` without an authorization,
   * `no_secret` if the account has none (or no key, if the wish is about one), `too_long` if its policy allows no such duration,
   * `checked_out` if it locks the account for another user, `changing` if
   * its secret is being changed
   */
  async checkout(
    user: Pick<User, 'id' | 'expirationDate'>,
    account: Account,
    clock: () => number,
    wish: CheckoutWish & { apiKey?: Asking; hasFactor?: boolean } = {},
  ): Promise<CheckedOut> {
    let ground = await groundOf(this.#store, user, account, clock(), wish)
    const { keyFormat, passphrase, hasFactor: _factor, ...told } = wish
    const format = keyFormat ?? (passphrase === undefined ? undefined : 'openssh')
    if ((await this.#secretChanges?.settled(account.id)) === false) throw changing()
    const secret = await this.#vault.revisionsOf(account.id)
    let credentials = await this.#vault.credentials(account.id)
    let checkout: Checkout
    try {
      requireSecret(credentials, format !== undefined)
      if (format !== undefined) {
        await this.#terms(user, account, clock(), told.duration)
        credentials = await this.#rewritten(user, credentials, format, passphrase)
      }
      const now = clock()
      ground = await groundOf(this.#store, user, account, now, wish)
      checkout = await this.#begin(user, account, now, ground, { ...told, severed: secret.severed })
      await this.#requireUnchanged(checkout, secret.revision, clock)
    } catch (error) {
      wipe(credentials)
      throw error
    }
    const out: CheckedOut = {
      checkoutId: checkout.id,
      login: account.accountLogin,
      begin: checkout.begin,
      expires: checkout.expires,
      authorizationIds: ground.authorizationIds,
      ...(ground.approval && { approval: ground.approval.id }),
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

  /** Ends a checkout whose secret was changed, or is being changed, since it was read. @throws CheckoutError `changing` */
  async #requireUnchanged(checkout: Checkout, revision: number, clock: () => number): Promise<void> {
    const { accountId } = checkout
    const isChanging = this.#secretChanges?.isChanging(accountId) ?? false
    if (!isChanging && (await this.#vault.revisionsOf(accountId)).revision === revision) return
    await this.#takeBack(checkout, clock())
    throw changing()
  }

  /** Returns the credentials with the key in that format. */
  #rewritten(
    user: Pick<User, 'id'>,
    credentials: readonly Credential[],
    format: KeyFormat,
    passphrase: string | undefined,
  ): Promise<Credential[]> {
    const rewritten = async (one: Credential): Promise<Credential> => {
      if (one.type !== 'ssh_key') return one
      const privateKey = await this.#rewriter.rewrite(
        user.id,
        one.privateKey,
        one.passphrase,
        format,
        passphrase,
      )
      wipeOne(one)
      return { type: 'ssh_key', privateKey }
    }
    return Promise.all(credentials.map(rewritten))
  }

  /**
   * Returns how many seconds a checkout would last now, and whether it locks the account.
   * @throws CheckoutError `too_long`, or `checked_out` if another has the account already
   */
  async #terms(
    user: Pick<User, 'id'>,
    account: Account,
    now: number,
    duration: number | undefined,
  ): Promise<{ lasts: number; isExclusive: boolean }> {
    const { duration: standard, maxDuration, enableLock } = await policyOf(this.#store, account)
    if (duration !== undefined && maxDuration < duration) {
      throw new CheckoutError(
        'too_long',
        `the account's policy allows a checkout of ${maxDuration} seconds, not of ${duration}`,
      )
    }
    if (enableLock) {
      if (this.#sessions?.holdFor(account.id, user.id)) throw heldBySession()
      const out = await this.#store.checkouts.active(account.id, now)
      if (out.length > 0) throw checkedOut(now, out)
    }
    return { lasts: duration ?? Math.min(standard ?? maxDuration, maxDuration), isExclusive: enableLock }
  }

  async #begin(
    user: Pick<User, 'id'>,
    account: Account,
    now: number,
    { approval, until }: Ground,
    { duration, apiKey, severed, ...told }: Beginning,
  ): Promise<Checkout> {
    const { lasts, isExclusive } = await this.#terms(user, account, now, duration)
    const begun = {
      accountId: account.id,
      userId: user.id,
      begin: now,
      expires: Math.min(now + lasts * 1000, until),
      ...told,
      ...(apiKey && { apiKey: apiKey.keyName, apiKeyId: apiKey.id }),
      ...(severed > 0 && { severedRevision: severed }),
      ...(approval && { approval: approval.id }),
    }
    if (approval && typeof (await this.#store.approvals.use(approval.id, now)) === 'string')
      throw approvalRequired()
    let checkout: Checkout
    try {
      checkout = await this.#create(begun, isExclusive)
    } catch (error) {
      if (approval) await this.#store.approvals.release(approval.id)
      throw error
    }
    if (!isExclusive || !this.#sessions?.holdFor(account.id, user.id)) return checkout
    // A session has begun meanwhile.
    await this.#takeBack(checkout, now)
    throw heldBySession()
  }

  /** Ends a checkout that is refused after it was stored. */
  async #takeBack(
    { id, accountId, approval }: Pick<Checkout, 'id' | 'accountId' | 'approval'>,
    now: number,
  ): Promise<void> {
    await this.#store.checkouts.end(id, now)
    if (approval !== undefined) await this.#store.approvals.release(approval)
    await this.#secretChanges?.freed(accountId)
  }

  async #create(checkout: Omit<Checkout, 'id'>, isExclusive: boolean): Promise<Checkout> {
    try {
      return await this.#store.checkouts.create(checkout, isExclusive)
    } catch (error) {
      if (!(error instanceof DuplicateError)) throw error
      const { accountId, begin } = checkout
      throw checkedOut(begin, await this.#store.checkouts.active(accountId, begin))
    }
  }

  /**
   * Returns the end that one extension by the account's policy gives to a checkout, in milliseconds since the epoch.
   * @throws CheckoutError `not_allowed` if the user has lost the authorization, `not_extendable` if the policy allows
   * no extension, or no more
   */
  extendedEnd(checkout: Checkout, now: number): Promise<number> {
    return extendedEnd(this.#store, checkout, now)
  }

  /**
   * Moves the end of a checkout to `end`, which `extendedEnd` has returned before. That is decided once more where it is
   * stored, so that no change of what the checkout rests on comes in between.
   * @throws CheckoutError as `extendedEnd` does, ChangedError if something has changed, MissingReferenceError if it has ended
   */
  extend(checkout: Checkout, end: number, clock: () => number): Promise<void> {
    return this.#store.amongRights(async (store) => {
      if ((await extendedEnd(store, checkout, clock())) !== end) throw new ChangedError('checkout')
      await store.checkouts.extend(checkout.id, checkout.expires, end, clock)
    })
  }

  /**
   * Does changes of a checkout one after the other: each sees what the one before has done, so that the event that precedes it
   * in the audit is about something that happens.
   */
  async inTurn<T>(id: Id, change: () => Promise<T>): Promise<T> {
    const before = this.#changes.get(id) ?? Promise.resolve()
    const done = before.then(change, change)
    this.#changes.set(id, done)
    try {
      return await done
    } finally {
      if (this.#changes.get(id) === done) this.#changes.delete(id)
    }
  }

  /** Returns the checkout if it is out at `now`. */
  async out(id: Id, now: number): Promise<Checkout | undefined> {
    const checkout = await this.#store.checkouts.find(id)
    return checkout && checkout.end === undefined && now < checkout.expires ? checkout : undefined
  }

  /**
   * Whether the secret of a checkout may be handed out at `now`: it is out, and nothing that it rests on was lost, or ends
   * sooner, since before it was stored, when no review could find it.
   */
  async mayHandOut({ checkoutId }: Pick<CheckedOut, 'checkoutId'>, now: number): Promise<boolean> {
    const checkout = await this.out(checkoutId, now)
    return checkout !== undefined && checkout.expires <= (await untilOf(this.#store, checkout, now))
  }

  /** Takes a checkout back whose secret was not handed out. @throws CheckoutError `not_out` if it has ended already */
  async undo(
    user: Pick<User, 'id'>,
    account: Pick<Account, 'id'>,
    { checkoutId, approval }: CheckedOut,
    now: number,
  ): Promise<void> {
    if (approval !== undefined) await this.#store.approvals.release(approval)
    await this.checkin(user, account, checkoutId, now)
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

/** @throws CheckoutError if there is none: a rule that cannot be evaluated denies */
async function policyOf(
  { checkoutPolicies }: Pick<Store, 'checkoutPolicies'>,
  { checkoutPolicyId }: Pick<Account, 'checkoutPolicyId'>,
): Promise<CheckoutPolicy> {
  const policy = await checkoutPolicies.find(checkoutPolicyId ?? DEFAULT_CHECKOUT_POLICY)
  if (!policy) throw new CheckoutError('not_allowed', 'the checkout policy of the account is gone')
  return policy
}

async function extendedEnd(
  store: GroundsStore & Pick<Store, 'checkoutPolicies'>,
  checkout: Checkout,
  now: number,
): Promise<number> {
  const until = await extendableUntil(store, checkout, now)
  const account = await store.accounts.find(checkout.accountId)
  if (!account) throw notAllowed(false)
  const { extension, maxDuration } = await policyOf(store, account)
  const allowed = Math.min(checkout.expires + extension * 1000, checkout.begin + maxDuration * 1000)
  const end = Math.min(allowed, until)
  if (checkout.expires < end) return end
  if (checkout.expires < allowed)
    throw new CheckoutError(
      'not_extendable',
      'the timeframe of the authorization, the approval, the API key or the user ends then',
    )
  throw new CheckoutError(
    'not_extendable',
    extension === 0
      ? "the account's policy allows no extension"
      : `the account's policy allows ${maxDuration} seconds in all, which the checkout has`,
  )
}

function wipe(credentials: readonly Credential[]): void {
  for (const credential of credentials) wipeOne(credential)
}

/** @throws CheckoutError `no_secret` */
function requireSecret(credentials: readonly Credential[], isKey: boolean): void {
  if (isKey && !credentials.some(({ type }) => type === 'ssh_key'))
    throw new CheckoutError('no_secret', 'no SSH key is stored for this account')
  if (credentials.every(({ type }) => type === 'enable'))
    throw new CheckoutError('no_secret', 'no secret is stored for this account')
}
