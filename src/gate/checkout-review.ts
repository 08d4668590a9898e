/**
 * Checkouts that have lost what they rest on: the user, the right or the API key by which it asked, the authorization, its
 * timeframe, or the secret. They are ended as if they had expired, and one whose timeframe ends before it is shortened.
 */
import type { Audit } from '../audit/events/catalogue.ts'
import type { EventFields } from '../audit/events/fields.ts'
import type { Grounds } from '../identity/basis.ts'
import type { Checkout, Id } from '../model/objects.ts'
import { MissingReferenceError } from '../store/engine/errors.ts'
import type { Store } from '../store/store.ts'
import { type EndOfCheckout, endsOf, type GroundsStore } from '../vault/checkout-grounds.ts'
import type { SecretChanges } from './secret-changes.ts'
import type { Touched } from './touched.ts'
import { chosen, type Withdrawals } from './withdrawals.ts'

/** Right in the API that a checkout needs. */
const NEEDS = { feature: 'checkout', level: 'execute' } as const

export interface CheckoutReviewOptions {
  store: GroundsStore & Pick<Store, 'amongRights' | 'checkouts'>
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
    const ends = new Map<Id, EndOfCheckout>()
    await withdrawals.each(
      await chosen(out, (checkout) => touched.hasCheckout(checkout)),
      async (checkout) => {
        const { id, userId, apiKeyId, expires } = checkout
        const flaw = await grounds.flawOfHolder(userId, NEEDS, apiKeyId)
        const time = now()
        const { until, reason, isReplaced } = ends.get(id)!(checkout, time)
        ends.delete(id)
        if (flaw !== undefined || until <= time) await this.#end(checkout, flaw ?? reason, isReplaced)
        else if (until < expires) await this.#shorten(checkout)
        return undefined
      },
      async (some) => {
        await grounds.prepare(some)
        const endOf = await endsOf(store, some)
        for (const { id } of some) ends.set(id, endOf)
      },
    )
  }

  /** Looks once more where it is stored: the timeframe may have been moved back, and the checkout extended. */
  async #shorten({ id }: Checkout): Promise<void> {
    const { now, store } = this.#options
    await store.amongRights(async (inner) => {
      const checkout = await inner.checkouts.find(id)
      if (!checkout) return
      const { until } = (await endsOf(inner, [checkout]))(checkout, now())
      if (until < checkout.expires) await inner.checkouts.shorten(id, Math.max(until, checkout.begin))
    })
  }

  async #end(checkout: Checkout, reason: string | undefined, isReplaced?: true): Promise<void> {
    const { audit, now, secretChanges, store } = this.#options
    const fields = await fieldsOf(store, checkout)
    // Its user may have returned it meanwhile.
    if ((await store.checkouts.find(checkout.id))?.end !== undefined) return
    await audit.record('checkout.expired', { ...fields, ...(reason !== undefined && { reason }) })
    // A secret that was replaced is worth nothing to its user.
    if (!isReplaced)
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
