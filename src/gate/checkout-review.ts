/**
 * Checkouts whose users have lost what they rest on: the user, the authorization, or its timeframe. They are ended as if
 * they had expired, and one whose timeframe ends before it is shortened.
 */
import type { Audit } from '../audit/events/catalogue.ts'
import type { EventFields } from '../audit/events/fields.ts'
import type { Grounds } from '../identity/basis.ts'
import type { Approval } from '../model/approvals.ts'
import { quorumNow } from '../model/conditions.ts'
import type { Checkout, Id } from '../model/objects.ts'
import { endOfCheckout, mayGoOn, stateAt, together } from '../model/timeframes.ts'
import { MissingReferenceError } from '../store/engine/errors.ts'
import type { Retrieval, Store } from '../store/store.ts'
import type { SecretChanges } from './secret-changes.ts'
import type { Touched } from './touched.ts'
import { chosen, type Withdrawals } from './withdrawals.ts'

const OVER = 'the timeframe of the authorization is over'
const GONE = 'the authorization for this account is gone'

export interface CheckoutReviewOptions {
  store: Pick<Store, 'access' | 'accounts' | 'approvals' | 'checkouts' | 'users'>
  audit: Pick<Audit, 'record'>
  secretChanges?: Pick<SecretChanges, 'freed' | 'onReturn'>
  /** Milliseconds since the epoch. */
  now: () => number
}

export class CheckoutReview {
  readonly #options: CheckoutReviewOptions

  constructor(options: CheckoutReviewOptions) {
    this.#options = options
  }

  /** Returns the users of whom checkouts are out. */
  async holders(): Promise<Id[]> {
    const { now, store } = this.#options
    return (await store.checkouts.out(now())).map(({ userId }) => userId)
  }

  async review(grounds: Grounds, withdrawals: Withdrawals, touched: Touched): Promise<void> {
    const { now, store } = this.#options
    const out = await store.checkouts.out(now())
    let granted = new Map<string, Retrieval[]>()
    const approvals = new Map<Id, Approval>()
    await withdrawals.each(
      await chosen(out, (checkout) => touched.hasCheckout(checkout)),
      async (checkout) => {
        const { id, userId, expires } = checkout
        const flaw = await grounds.flawOfUser(userId)
        const approval = approvals.get(checkout.approval ?? '')
        const rows = counting(checkout, granted.get(keyOf(checkout)) ?? [], approval)
        const time = now()
        const until = rows
          ? Math.min(
              endOf(rows, checkout, approval, time),
              (await grounds.user(userId))?.expirationDate ?? Number.POSITIVE_INFINITY,
            )
          : time
        if (flaw !== undefined || until <= time) await this.#end(checkout, flaw ?? (rows ? OVER : GONE))
        else if (until < expires) await store.checkouts.shorten(id, until)
        return undefined
      },
      async (some) => {
        await grounds.prepare(some)
        const ids = some.flatMap(({ approval }) => (approval === undefined ? [] : [approval]))
        for (const one of await store.approvals.some(ids)) approvals.set(one.id, one)
        const rows = await store.access.retrievals(some)
        granted = new Map([...granted, ...Map.groupBy(rows, keyOf)])
      },
    )
  }

  async #end(checkout: Checkout, reason: string): Promise<void> {
    const { audit, now, secretChanges, store } = this.#options
    const fields = await fieldsOf(store, checkout)
    // Its user may have returned it meanwhile.
    if ((await store.checkouts.find(checkout.id))?.end !== undefined) return
    await audit.record('checkout.expired', { ...fields, reason })
    await secretChanges?.onReturn(checkout.accountId, 'checkin', String(fields.user ?? checkout.userId))
    try {
      await store.checkouts.end(checkout.id, now())
    } catch (error) {
      // Returned just now.
      if (!(error instanceof MissingReferenceError)) throw error
    }
    await secretChanges?.freed(checkout.accountId)
  }
}

const keyOf = ({ userId, accountId }: { userId: Id; accountId: Id }) => `${userId} ${accountId}`

/** Returns the authorizations that a checkout rests on, or undefined if there is none any more. */
function counting(
  { approval: id }: Checkout,
  rows: readonly Retrieval[],
  approval: Approval | undefined,
): Retrieval[] | undefined {
  const some = rows.filter(({ authorizationId, conditions }) =>
    id === undefined ? quorumNow(conditions, true) === 0 : authorizationId === approval?.authorizationId,
  )
  return some.length === 0 ? undefined : some
}

/** Returns when the checkout has to end by its timeframes. Approvers may have let it begin outside of them. */
function endOf(
  rows: readonly Retrieval[],
  { begin }: Checkout,
  approval: Approval | undefined,
  now: number,
): number {
  const timeframes = together(rows.map((row) => row.timeframes))
  if (approval && !stateAt(timeframes, begin).isWithin) return Number.POSITIVE_INFINITY
  return endOfCheckout(timeframes, begin, now)
}

/** Returns the fields of a checkout that has ended without a return. */
export async function fieldsOf(
  { accounts, users }: Pick<Store, 'accounts' | 'users'>,
  { id, accountId, userId, apiKey }: Checkout,
): Promise<EventFields> {
  const [placed] = await accounts.meant({ account: accountId }, 1)
  const user = await users.find(userId)
  return {
    user: user?.userName ?? userId,
    ...(apiKey !== undefined && { api_key: apiKey }),
    account: placed?.account.accountName ?? accountId,
    ...(placed && { domain: placed.domain.domainName }),
    ...(placed?.device && { device: placed.device.deviceName }),
    object: id,
  }
}

/** Returns why a checkout that has expired did so, if that is more than its duration. */
export async function reasonOfExpiry(
  { access }: Pick<Store, 'access'>,
  { userId, accountId, begin, expires, approval }: Checkout,
): Promise<string | undefined> {
  if (approval !== undefined) return undefined
  const rows = await access.retrievals([{ userId, accountId }])
  if (rows.length === 0) return undefined
  const timeframes = together(rows.map((row) => row.timeframes))
  return mayGoOn(timeframes, begin, expires) ? undefined : OVER
}
