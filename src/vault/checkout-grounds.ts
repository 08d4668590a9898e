/** Grounds of checkouts: by which one may begin, and when one that is out has lost them. */
import { type RetrievalTerms, retrievalTerms, retrievalTermsAt } from '../access/retrievals.ts'
import { type Approval, endOf, holds, isUsable, reasonFlaw } from '../model/approvals.ts'
import { quorumNow } from '../model/conditions.ts'
import type { Account, ApiKey, Checkout, Id, User } from '../model/objects.ts'
import { lastsUntil, stateAt, together } from '../model/timeframes.ts'
import type { Retrieval, Store } from '../store/store.ts'
import { approvalRequired, CheckoutError, FactorRequiredError, notAllowed } from './checkout-refusals.ts'

const GONE = 'the authorization for this account is gone'
/** Which of these it is would have to be looked up. */
const NO_USER = 'the user was removed, disabled or locked'
const REPLACED = 'the secret of the account was changed'
const OVER = {
  timeframe: 'the timeframe of the authorization is over',
  approval: 'the approval is over',
  user: 'the user has expired',
  apiKey: 'the API key has expired',
} as const

export type GroundsStore = Pick<Store, 'access' | 'accounts' | 'apiKeys' | 'approvals' | 'users'>

/** The authorizations of a checkout, its approval, and its end at the latest in milliseconds since the epoch. */
export interface Ground {
  authorizationIds: Id[]
  until: number
  approval?: Approval
}

/**
 * Returns what a checkout is allowed by now.
 * @throws FactorRequiredError, CheckoutError `not_allowed`, `approval_required`, or `no_reason` without a reason that an
 * authorization asks for
 */
export async function groundOf(
  store: Pick<Store, 'access' | 'approvals'>,
  user: Pick<User, 'id' | 'expirationDate'>,
  { id: accountId }: Pick<Account, 'id'>,
  now: number,
  told: { comment?: string; ticket?: string; apiKey?: Pick<ApiKey, 'expirationDate'>; hasFactor?: boolean },
): Promise<Ground> {
  const { comment = '', ticket = '', apiKey, hasFactor = false } = told
  const rows = await store.access.retrievals([{ userId: user.id, accountId }])
  const terms = retrievalTermsAt(rows, now, hasFactor)
  if (!terms) throw notAllowed(rows.length > 0)
  if (terms.needsFactor) throw new FactorRequiredError(terms.authorizationIds)
  if (terms.quorum === undefined) {
    const flaw = reasonFlaw({ comment, ticket }, terms.wanted)
    if (flaw !== undefined) throw new CheckoutError('no_reason', flaw)
    return ground(rows, terms, now, { user, apiKey })
  }
  const { isOutside } = terms
  const object = { userId: user.id, kind: 'checkout', serviceId: '', accountId, login: '' } as const
  for (const approval of await store.approvals.ofUser(object, 'accepted')) {
    if (!isUsable(approval, now)) continue
    const approved = retrievalTerms(rows, { approved: approval.authorizationId, isOutside, hasFactor })
    if (approved?.needsFactor) throw new FactorRequiredError(approved.authorizationIds)
    if (approved) return ground(rows, approved, now, { user, apiKey, approval })
  }
  throw approvalRequired()
}

interface Holder {
  user: Pick<User, 'expirationDate'> | undefined
  apiKey: Pick<ApiKey, 'expirationDate'> | undefined
  approval?: Approval
}

function ground(
  rows: readonly Retrieval[],
  { authorizationIds, isOutside }: RetrievalTerms,
  now: number,
  holder: Holder,
): Ground {
  const counting = rows.filter((row) => authorizationIds.includes(row.authorizationId))
  const { approval } = holder
  const { until } = firstOf(isOutside ? Number.POSITIVE_INFINITY : lastsUntil(counting, now, now), holder)
  return { authorizationIds, until, ...(approval && { approval }) }
}

/** When a checkout has to end, in milliseconds since the epoch, and why. */
export interface CheckoutEnd {
  until: number
  reason: string | undefined
  /** The secret that was handed out is not the account's any more. */
  isReplaced?: true
}

/** Returns the first of the ends. */
function firstOf(timeframe: number, { user, apiKey, approval }: Holder): CheckoutEnd {
  const ends = {
    timeframe,
    approval: approval && endOf(approval),
    user: user?.expirationDate,
    apiKey: apiKey?.expirationDate,
  }
  const first: CheckoutEnd = { until: Number.POSITIVE_INFINITY, reason: undefined }
  for (const key of ['timeframe', 'approval', 'user', 'apiKey'] as const) {
    const end = ends[key]
    if (end !== undefined && end < first.until) Object.assign(first, { until: end, reason: OVER[key] })
  }
  return first
}

/** End of what was lost at an unknown time. */
const LOST = { until: Number.NEGATIVE_INFINITY } as const

/** Returns when a checkout has to end: at `now` or before if that has come. */
export type EndOfCheckout = (checkout: Checkout, now: number) => CheckoutEnd

const keyOf = ({ userId, accountId }: { userId: Id; accountId: Id }) => `${userId} ${accountId}`

/** Reads what these checkouts rest on. Whether their users and API keys may still ask for one is another question. */
export async function endsOf(
  { access, accounts, apiKeys, approvals, users }: GroundsStore,
  some: readonly Checkout[],
): Promise<EndOfCheckout> {
  const ids = <K extends 'approval' | 'userId' | 'accountId' | 'apiKeyId'>(key: K): Id[] => [
    ...new Set(some.flatMap((one) => one[key] ?? [])),
  ]
  const byId = <T extends { id: Id }>(all: readonly T[]) => new Map(all.map((one) => [one.id, one]))
  const rows = Map.groupBy(await access.retrievals(some), keyOf)
  const approved = byId(await approvals.some(ids('approval')))
  const holders = byId(await users.some(ids('userId')))
  const severed = await accounts.severedRevisions(ids('accountId'))
  const keys = new Map<Id, ApiKey | undefined>()
  for (const id of ids('apiKeyId')) keys.set(id, await apiKeys.find(id))
  return (checkout, now) => {
    const { accountId, approval: id, begin, severedRevision = 0 } = checkout
    if (severedRevision < (severed.get(accountId) ?? 0))
      return { ...LOST, reason: REPLACED, isReplaced: true }
    const user = holders.get(checkout.userId)
    if (!user || user.isDisabled || user.isLocked) return { ...LOST, reason: NO_USER }
    const approval = approved.get(id ?? '')
    const counting = (rows.get(keyOf(checkout)) ?? []).filter(({ authorizationId, conditions }) =>
      id === undefined ? quorumNow(conditions, true) === 0 : authorizationId === approval?.authorizationId,
    )
    if (counting.length === 0) return { ...LOST, reason: GONE }
    // Approvers may have let it begin outside of its timeframes.
    const isOutside =
      approval && !stateAt(together(counting.map(({ timeframes }) => timeframes)), begin).isWithin
    return firstOf(isOutside ? Number.POSITIVE_INFINITY : lastsUntil(counting, begin, now), {
      user,
      apiKey: keys.get(checkout.apiKeyId ?? ''),
      ...(approval && { approval }),
    })
  }
}

/** Returns until when a checkout that is out may last at `now`; `now` or earlier if it may not. */
export async function untilOf(store: GroundsStore, checkout: Checkout, now: number): Promise<number> {
  const { until } = (await endsOf(store, [checkout]))(checkout, now)
  if (checkout.approval === undefined) return until
  const approval = await store.approvals.find(checkout.approval)
  return approval && holds(approval, now) ? until : now
}

/** Returns until when it may be extended. Overtime extends nothing. @throws CheckoutError `not_allowed` */
export async function extendableUntil(store: GroundsStore, checkout: Checkout, now: number): Promise<number> {
  const rows = await store.access.retrievals([checkout])
  const open = retrievalTermsAt(rows, now)
  const isOpen = checkout.approval !== undefined || (open && open.quorum === undefined)
  const until = isOpen ? await untilOf(store, checkout, now) : now
  if (until <= now) throw notAllowed(rows.length > 0)
  return until
}
