/**
 * Checkout and check-in of an account's secret, under the account's policy: for how long, and whether by one
 * user at a time.
 */
import { retrievalTerms } from '../access/retrievals.ts'
import { type Approval, endOf, isUsable, reasonFlaw } from '../model/approvals.ts'
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
  | 'no_reason'
  | 'not_out'

export class CheckoutError extends Error {
  override readonly name = 'CheckoutError'
  readonly reason: CheckoutRefusal
  /** When an account that is checked out will be free at the latest, in milliseconds since the epoch. */
  readonly until: number | undefined

  constructor(reason: CheckoutRefusal, message: string, until?: number) {
    super(message)
    this.reason = reason
    this.until = until
  }
}

/** Reports sessions that hold an account; the gate implements it. */
export interface SessionHolds {
  holdFor(accountId: Id, otherThan: Id): boolean
}

type CheckoutStore = Pick<Store, 'approvals' | 'checkouts' | 'checkoutPolicies' | 'access'>

export class Checkouts {
  readonly #store: CheckoutStore
  readonly #vault: Vault
  readonly #sessions: SessionHolds | undefined
  readonly #rewriter = new KeyRewriter()
  readonly #changes = new Map<Id, Promise<unknown>>()

  constructor(store: CheckoutStore, vault: Vault, sessions?: SessionHolds) {
    this.#store = store
    this.#vault = vault
    this.#sessions = sessions
  }

  /**
   * Returns the account's secret, and stores the checkout before. `clock` in milliseconds since the epoch; `apiKey`: the
   * key that asks in the user's name. A key is rewritten before the checkout begins, so that one that is over by then is
   * none.
   * @throws RewriterBusyError, RewriteError, CheckoutError `not_allowed` without an authorization, `no_secret` if the
   * account has none (or no key, if the wish is about one), `too_long` if its policy allows no such duration,
   * `checked_out` if it locks the account for another user
   */
  async checkout(
    user: Pick<User, 'id'>,
    account: Account,
    clock: () => number,
    wish: CheckoutWish & { apiKey?: string } = {},
  ): Promise<CheckedOut> {
    let ground = await this.#ground(user, account, clock(), wish)
    const { keyFormat, passphrase, ...told } = wish
    const format = keyFormat ?? (passphrase === undefined ? undefined : 'openssh')
    let credentials = await this.#vault.credentials(account.id)
    let checkout: Checkout
    try {
      requireSecret(credentials, format !== undefined)
      if (format !== undefined) {
        await this.#terms(user, account, clock(), told.duration)
        credentials = await this.#rewritten(user, credentials, format, passphrase)
        ground = await this.#ground(user, account, clock(), wish)
      }
      checkout = await this.#begin(user, account, clock(), told, ground)
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
    const { duration: standard, maxDuration, enableLock } = await this.#policyOf(account)
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
    { duration, ...told }: Pick<CheckoutWish, 'duration' | 'comment' | 'ticket'> & { apiKey?: string },
    { approval }: Ground,
  ): Promise<Checkout> {
    const { lasts, isExclusive } = await this.#terms(user, account, now, duration)
    const begun = {
      accountId: account.id,
      userId: user.id,
      begin: now,
      expires: Math.min(now + lasts * 1000, (approval && endOf(approval)) ?? Number.POSITIVE_INFINITY),
      ...told,
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
    await this.#store.checkouts.end(checkout.id, now)
    if (approval) await this.#store.approvals.release(approval.id)
    throw heldBySession()
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
   * Returns what a checkout is allowed by now.
   * @throws CheckoutError `not_allowed`, `approval_required`, or `no_reason` without a reason that an authorization asks for
   */
  async #ground(
    user: Pick<User, 'id'>,
    account: Pick<Account, 'id'>,
    now: number,
    { comment = '', ticket = '' }: Pick<CheckoutWish, 'comment' | 'ticket'>,
  ): Promise<Ground> {
    const all = await this.#store.access.retrievalAuthorizations(user.id, account.id)
    const terms = retrievalTerms(all)
    if (!terms)
      throw new CheckoutError(
        'not_allowed',
        'the account does not exist, or you may not check its secret out',
      )
    if (terms.quorum === undefined) {
      const flaw = reasonFlaw({ comment, ticket }, terms.wanted)
      if (flaw !== undefined) throw new CheckoutError('no_reason', flaw)
      return { authorizationIds: terms.authorizationIds }
    }
    const object = {
      userId: user.id,
      kind: 'checkout' as const,
      serviceId: '',
      accountId: account.id,
      login: '',
    }
    for (const approval of await this.#store.approvals.ofUser(object, 'accepted')) {
      const approved = isUsable(approval, now) && retrievalTerms(all, approval.authorizationId)
      if (approved) return { authorizationIds: approved.authorizationIds, approval }
    }
    throw approvalRequired()
  }

  /** @throws CheckoutError if there is none: a rule that cannot be evaluated denies */
  async #policyOf(account: Account): Promise<CheckoutPolicy> {
    const policy = await this.#store.checkoutPolicies.find(
      account.checkoutPolicyId ?? DEFAULT_CHECKOUT_POLICY,
    )
    if (!policy) throw new CheckoutError('not_allowed', 'the checkout policy of the account is gone')
    return policy
  }

  /**
   * Returns the end that one extension by the account's policy gives to a checkout, in milliseconds since the epoch.
   * @throws CheckoutError `not_allowed` if the user has lost the authorization, `not_extendable` if the policy allows
   * no extension, or no more
   */
  async extendedEnd(user: Pick<User, 'id'>, account: Account, checkout: Checkout): Promise<number> {
    const all = await this.#store.access.retrievalAuthorizations(user.id, account.id)
    const approval =
      checkout.approval === undefined ? undefined : await this.#store.approvals.find(checkout.approval)
    const terms = retrievalTerms(all, approval ? approval.authorizationId : undefined)
    if (!terms || (!approval && terms.quorum !== undefined))
      throw new CheckoutError(
        'not_allowed',
        'the account does not exist, or you may not check its secret out',
      )
    const { extension, maxDuration } = await this.#policyOf(account)
    const approved = (approval && endOf(approval)) ?? Number.POSITIVE_INFINITY
    const wished = Math.min(checkout.expires + extension * 1000, checkout.begin + maxDuration * 1000)
    const end = Math.min(wished, approved)
    if (checkout.expires < end) return end
    if (approved < wished)
      throw new CheckoutError('not_extendable', 'the time of the approval is over then: ask for another one')
    throw new CheckoutError(
      'not_extendable',
      extension === 0
        ? "the account's policy allows no extension"
        : `the account's policy allows ${maxDuration} seconds in all, which the checkout has`,
    )
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

/** The authorizations of a checkout, and its approval. */
interface Ground {
  authorizationIds: Id[]
  approval?: Approval
}

function approvalRequired(): CheckoutError {
  return new CheckoutError(
    'approval_required',
    'approvers have to agree first: ask with POST /approvals, or sallyport approvals request',
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

function checkedOut(now: number, out: readonly Checkout[]): CheckoutError {
  const until = Math.max(now, ...out.map(({ expires }) => expires))
  const text = new Date(until).toISOString()
  return new CheckoutError(
    'checked_out',
    `the account is checked out, and its policy locks it until ${text}, or until it is returned`,
    until,
  )
}

function heldBySession(): CheckoutError {
  return new CheckoutError(
    'checked_out',
    "another user's session uses the account, and its policy locks it until that ends",
  )
}

function notOut(): CheckoutError {
  return new CheckoutError('not_out', 'there is no such checkout of yours that is still out')
}
