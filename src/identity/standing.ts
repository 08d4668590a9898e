/** Whether a known user may act at all. Checked at every sign-in, and again at each review. */

import { isFrom } from '../model/networks.ts'
import type { User, UserAuth } from '../model/objects.ts'

export type StandingFlaw = 'disabled' | 'user_locked' | 'expired' | 'wrong_source'

/**
 * Returns undefined if the user is in good standing. `source`: the client's address; `now`: milliseconds
 * since the epoch.
 */
export function flawOfStanding(
  user: Pick<User, 'isDisabled' | 'isLocked' | 'expirationDate' | 'ipSource'>,
  source: string,
  now: number,
): StandingFlaw | undefined {
  if (user.isDisabled) return 'disabled'
  if (user.isLocked) return 'user_locked'
  if (user.expirationDate !== undefined && user.expirationDate <= now) return 'expired'
  return isFrom(source, user.ipSource) ? undefined : 'wrong_source'
}

/** As `flawOfStanding`, for a method of the bastion's own. */
export function flawOfMethod(
  user: User | undefined,
  method: UserAuth,
  source: string,
  now: number,
): StandingFlaw | 'unknown_user' | 'method_not_allowed' | undefined {
  if (!user) return 'unknown_user'
  if (!user.userAuths.includes(method)) return 'method_not_allowed'
  return flawOfStanding(user, source, now)
}
