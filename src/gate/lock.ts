/** The lock of a checkout policy: one user at a time has an account's secret, by checkout or by session. */
import { DEFAULT_CHECKOUT_POLICY, type Id } from '../model/objects.ts'
import type { Store } from '../store/store.ts'
import type { RunningSessions } from './running.ts'

/** Whether the account's policy keeps this user out, because another one is in. `now` in milliseconds. */
export async function isLockedFor(
  { accounts, checkoutPolicies, checkouts }: Pick<Store, 'accounts' | 'checkoutPolicies' | 'checkouts'>,
  running: RunningSessions,
  accountId: Id,
  userId: Id,
  now: number,
): Promise<boolean> {
  const account = await accounts.find(accountId)
  const policy = await checkoutPolicies.find(account?.checkoutPolicyId ?? DEFAULT_CHECKOUT_POLICY)
  // a rule that cannot be evaluated denies
  if (!policy) return true
  if (!policy.enableLock) return false
  if (running.holdFor(accountId, userId)) return true
  return (await checkouts.active(accountId, now)).some((out) => out.userId !== userId)
}
