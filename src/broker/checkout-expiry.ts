/** Ends expired checkouts, with an event for each. */
import type { Audit } from '../audit/events/catalogue.ts'
import { fieldsOf, reasonOfExpiry } from '../gate/checkout-review.ts'
import type { Id } from '../model/objects.ts'
import type { Store } from '../store/store.ts'

/** Checkouts ended per run; the rest wait for the next. */
const MAX_AT_ONCE = 100

/** Milliseconds between two runs: how late the event may be. The checkout itself expires in time. */
export const EXPIRY_INTERVAL_MS = 5000

/** Changes of secrets that follow the ends of checkouts. */
export interface ReturnedSecrets {
  onReturn(accountId: Id, cause: 'checkin', user: string): Promise<void>
  freed(accountId: Id): Promise<void>
}

export async function endExpiredCheckouts(
  store: Pick<Store, 'access' | 'checkouts' | 'accounts' | 'users'>,
  audit: Pick<Audit, 'record'>,
  now: number,
  secretChanges?: ReturnedSecrets,
): Promise<void> {
  for (const checkout of await store.checkouts.expired(now, MAX_AT_ONCE)) {
    const reason = await reasonOfExpiry(store, checkout)
    await audit.record('checkout.expired', {
      ...(await fieldsOf(store, checkout)),
      ...(reason !== undefined && { reason }),
    })
    if (secretChanges) {
      const user = await store.users.find(checkout.userId)
      await secretChanges.onReturn(checkout.accountId, 'checkin', user?.userName ?? checkout.userId)
    }
    await store.checkouts.end(checkout.id, checkout.expires)
    await secretChanges?.freed(checkout.accountId)
  }
}
