/**
 * Checkout and check-in of an account's secret, under the account's policy: for how long, and whether by one
 * user at a time.
 */
import { type RetrievalTerms, retrievalTerms, retrievalTermsAt } from '../access/retrievals.ts'
import { type Approval, endOf, holds, isUsable, reasonFlaw } from '../model/approvals.ts'
import {
  type Account,
  type Checkout,
  type CheckoutPolicy,
  DEFAULT_CHECKOUT_POLICY,
  type Id,
  type User,
} from '../model/objects.ts'
import type { Secret } from '../model/secret.ts'
import { endOfCheckout, together } from '../model/timeframes.ts'
import { DuplicateError, MissingReferenceError } from '../store/engine/errors.ts'
import type { Retrieval, Store } from '../store/store.ts'
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

type CheckoutStore = Pick<Store, 'approvals' | 'checkouts' | 'checkoutPolicies' | 'access' | 'users'>

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
   * key that asks in the user's name. A key is rewritten before the checkout begins, so that one that is over by then is
   * none.
   * @throws RewriterBusyError, RewriteError, CheckoutError `not_allowed` without an authorization, `no_secret` if the
   * account has none (or no key, if the wish is about one), `too_long` if its policy allows no such duration,
   * `checked_out` if it locks the account for another user, `changing` if
   * its secret is being changed
   */
  async checkout(
    user: Pick<User, 'id' | 'expirationDate'>,
    account: Account,
    clock: () => number,
    wish: CheckoutWish & { apiKey?: string } = {},
  ): Promise<CheckedOut> {
    let ground = await this.#ground(user, account, clock(), wish)
    const { keyFormat, passphrase, ...told } = wish
    const format = keyFormat ?? (passphrase === undefined ? undefined : 'openssh')
    if ((await this.#secretChanges?.settled(account.id)) === false) throw changing()
    const revision = await this.#vault.revisionOf(account.id)
    let credentials = await this.#vault.credentials(account.id)
    let checkout: Checkout
    try {
      requireSecret(credentials, format !== undefined)
      if (format !== undefined) {
        await this.#terms(user, account, clock(), told.duration)
        credentials = await this.#rewritten(user, credentials, format, passphrase)
      }
      const now = clock()
      ground = await this.#ground(user, account, now, wish)
      checkout = await this.#begin(user, account, now, ground, told)
      await this.#requireUnchanged(checkout, revision, clock)
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
    if (!isChanging && (await this.#vault.revisionOf(accountId)) === revision) return
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
    { approval, until }: Ground,
    { duration, ...told }: Pick<CheckoutWish, 'duration' | 'comment' | 'ticket'> & { apiKey?: string },
  ): Promise<Checkout> {
    const { lasts, isExclusive } = await this.#terms(user, account, now, duration)
    const begun = {
      accountId: account.id,
      userId: user.id,
      begin: now,
      expires: Math.min(now + lasts * 1000, until),
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
   * Returns what a checkout is allowed by now.
   * @throws CheckoutError `not_allowed`, `approval_required`, or `no_reason` without a reason that an authorization asks for
   */
  async #ground(
    user: Pick<User, 'id' | 'expirationDate'>,
    account: Pick<Account, 'id'>,
    now: number,
    { comment = '', ticket = '' }: Pick<CheckoutWish, 'comment' | 'ticket'>,
  ): Promise<Ground> {
    const rows = await this.#retrievals(user, account)
    const terms = retrievalTermsAt(rows, now)
    if (!terms) throw notAllowed(rows.length > 0)
    if (terms.quorum === undefined) {
      const flaw = reasonFlaw({ comment, ticket }, terms.wanted)
      if (flaw !== undefined) throw new CheckoutError('no_reason', flaw)
      return groundOf(rows, terms, user, now)
    }
    const object = {
      userId: user.id,
      kind: 'checkout',
      serviceId: '',
      accountId: account.id,
      login: '',
    } as const
    for (const approval of await this.#store.approvals.ofUser(object, 'accepted')) {
      const { isOutside } = terms
      const approved =
        isUsable(approval, now) && retrievalTerms(rows, { approved: approval.authorizationId, isOutside })
      if (approved) return groundOf(rows, approved, user, now, approval)
    }
    throw approvalRequired()
  }

  #retrievals(
    { id: userId }: Pick<User, 'id'>,
    { id: accountId }: Pick<Account, 'id'>,
  ): Promise<Retrieval[]> {
    return this.#store.access.retrievals([{ userId, accountId }])
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
  async extendedEnd(
    user: Pick<User, 'id' | 'expirationDate'>,
    account: Account,
    checkout: Checkout,
    now: number,
  ): Promise<number> {
    const { until } = await this.#groundOfCheckout(user, account, checkout, now)
    const { extension, maxDuration } = await this.#policyOf(account)
    const allowed = Math.min(checkout.expires + extension * 1000, checkout.begin + maxDuration * 1000)
    const end = Math.min(allowed, until)
    if (checkout.expires < end) return end
    if (checkout.expires < allowed)
      throw new CheckoutError(
        'not_extendable',
        'the timeframe of the authorization, the approval or the user ends then',
      )
    throw new CheckoutError(
      'not_extendable',
      extension === 0
        ? "the account's policy allows no extension"
        : `the account's policy allows ${maxDuration} seconds in all, which the checkout has`,
    )
  }

  /** Returns what a checkout that is out is allowed by now. @throws CheckoutError `not_allowed` */
  async #groundOfCheckout(
    user: Pick<User, 'id' | 'expirationDate'>,
    account: Pick<Account, 'id'>,
    { approval: id }: Checkout,
    now: number,
  ): Promise<Ground> {
    const rows = await this.#retrievals(user, account)
    const open = retrievalTermsAt(rows, now)
    if (id === undefined) {
      if (!open || open.quorum !== undefined) throw notAllowed(rows.length > 0)
      return groundOf(rows, open, user, now)
    }
    const approval = await this.#store.approvals.find(id)
    const isOutside = open?.isOutside ?? true
    const terms = approval && retrievalTerms(rows, { approved: approval.authorizationId, isOutside })
    if (!approval || !terms || !holds(approval, now)) throw notAllowed(false)
    return groundOf(rows, terms, user, now, approval)
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
   * Whether the secret of a checkout may be handed out at `now`: it is out, and neither user, right nor approval was lost
   * before it was stored, when no review could find it.
   */
  async mayHandOut({ checkoutId, approval: id }: CheckedOut, now: number): Promise<boolean> {
    const checkout = await this.out(checkoutId, now)
    const user = checkout && (await this.#store.users.find(checkout.userId))
    if (!user || user.isDisabled || user.isLocked) return false
    const rows = await this.#retrievals(user, { id: checkout.accountId })
    if (id === undefined) {
      const terms = retrievalTermsAt(rows, now)
      return terms !== undefined && terms.quorum === undefined
    }
    const approval = await this.#store.approvals.find(id)
    return (
      approval !== undefined &&
      holds(approval, now) &&
      rows.some(({ authorizationId }) => authorizationId === approval.authorizationId)
    )
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

/** The authorizations of a checkout, its approval, and its end at the latest in milliseconds since the epoch. */
interface Ground {
  authorizationIds: Id[]
  until: number
  approval?: Approval
}

function groundOf(
  rows: readonly Retrieval[],
  { authorizationIds, isOutside }: RetrievalTerms,
  { expirationDate }: Pick<User, 'expirationDate'>,
  now: number,
  approval?: Approval,
): Ground {
  const counting = rows.filter((row) => authorizationIds.includes(row.authorizationId))
  const timeframes = together(counting.map((row) => row.timeframes))
  const ends = [
    isOutside ? undefined : endOfCheckout(timeframes, now, now),
    approval && endOf(approval),
    expirationDate,
  ]
  const until = Math.min(...ends.map((end) => end ?? Number.POSITIVE_INFINITY))
  return { authorizationIds, until, ...(approval && { approval }) }
}

function notAllowed(isOutside: boolean): CheckoutError {
  return new CheckoutError(
    'not_allowed',
    'the account does not exist, or you may not check its secret out',
    undefined,
    isOutside ? 'it is outside the timeframes of the authorization' : undefined,
  )
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

function changing(): CheckoutError {
  return new CheckoutError('changing', 'the secret of the account is being changed: try again in a moment')
}

function notOut(): CheckoutError {
  return new CheckoutError('not_out', 'there is no such checkout of yours that is still out')
}
