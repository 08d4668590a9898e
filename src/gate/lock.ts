/** The lock of a checkout policy: one user at a time has an account's secret, by checkout or by session. */
import { DEFAULT_CHECKOUT_POLICY, type Id } from '../model/objects.ts'
import type { Store } from '../store/store.ts'
import type { RunningSessions } from './running.ts'

/**
 * Lets this user have the account until what it answers is called: when the session runs, or is not opened after all.
 * undefined: the account's policy keeps them out, because another one is in. `now` in milliseconds.
 */
export async function claimAccount(
  { accounts, checkoutPolicies, checkouts }: Pick<Store, 'accounts' | 'checkoutPolicies' | 'checkouts'>,
  running: RunningSessions,
  accountId: Id,
  userId: Id,
  now: number,
): Promise<(() => void) | undefined> {
  const account = await accounts.find(accountId)
  const policy = await checkoutPolicies.find(account?.checkoutPolicyId ?? DEFAULT_CHECKOUT_POLICY)
  // a rule that cannot be evaluated denies
  if (!policy) return undefined
  if (!policy.enableLock) return () => undefined
  // before the checkouts are looked at, as a checkout is written before the sessions are: one of two sees the other
  const release = running.claim(accountId, userId)
  if (!release) return undefined
  try {
    const isOut = (await checkouts.active(accountId, now)).some((out) => out.userId !== userId)
    if (!isOut) return release
  } catch (error) {
    release()
    throw error
  }
  release()
  return undefined
}
