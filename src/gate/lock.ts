/**
 * The lock of a checkout policy: only one user at a time holds an account's secret, by checkout or by
 * session.
 */
import { DEFAULT_CHECKOUT_POLICY, type Id } from '../model/objects.ts'
import type { Store } from '../store/store.ts'
import type { RunningSessions } from './running.ts'

/** Why the account cannot be claimed; `until`: when a checkout that holds it expires, in milliseconds. */
export interface Held {
  until?: number
}

/**
 * Claims the account and returns a function that releases it: call it when the session runs, or was not
 * opened. Returns what is known of the holder if the account's policy allows one user at a time and another one
 * holds it. `now` in milliseconds.
 */
export async function claimAccount(
  { accounts, checkoutPolicies, checkouts }: Pick<Store, 'accounts' | 'checkoutPolicies' | 'checkouts'>,
  running: RunningSessions,
  accountId: Id,
  userId: Id,
  now: number,
): Promise<(() => void) | Held> {
  const account = await accounts.find(accountId)
  const policy = await checkoutPolicies.find(account?.checkoutPolicyId ?? DEFAULT_CHECKOUT_POLICY)
  // A rule that cannot be evaluated denies.
  if (!policy) return {}
  if (!policy.enableLock) return () => undefined
  // Claim before reading the checkouts, as a checkout is written before the sessions are read: of two at the
  // same time, one sees the other.
  const release = running.claim(accountId, userId)
  if (!release) return {}
  try {
    const others = (await checkouts.active(accountId, now)).filter((out) => out.userId !== userId)
    if (others.length === 0) return release
    release()
    return { until: Math.max(...others.map(({ expires }) => expires)) }
  } catch (error) {
    release()
    throw error
  }
}
