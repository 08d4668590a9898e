/** Ends expired checkouts, with an event for each. */
import type { Audit } from '../audit/events/catalogue.ts'
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
  { checkouts, accounts, users }: Pick<Store, 'checkouts' | 'accounts' | 'users'>,
  audit: Pick<Audit, 'record'>,
  now: number,
  secretChanges?: ReturnedSecrets,
): Promise<void> {
  for (const { id, accountId, userId, expires, apiKey } of await checkouts.expired(now, MAX_AT_ONCE)) {
    const [placed] = await accounts.meant({ account: accountId }, 1)
    const user = await users.find(userId)
    await audit.record('checkout.expired', {
      user: user?.userName ?? userId,
      ...(apiKey !== undefined && { api_key: apiKey }),
      account: placed?.account.accountName ?? accountId,
      ...(placed && { domain: placed.domain.domainName }),
      ...(placed?.device && { device: placed.device.deviceName }),
      object: id,
    })
    await secretChanges?.onReturn(accountId, 'checkin', user?.userName ?? userId)
    await checkouts.end(id, expires)
    await secretChanges?.freed(accountId)
  }
}
