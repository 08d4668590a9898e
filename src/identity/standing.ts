/** Whether a user who is known may act at all: asked at every sign-in, and again whenever it matters. */

import { isFrom } from '../model/networks.ts'
import type { User } from '../model/objects.ts'

export type StandingFlaw = 'disabled' | 'expired' | 'wrong_source'

/** undefined: in good standing. `source` is the client's address, `now` in milliseconds since the epoch. */
export function flawOfStanding(
  user: Pick<User, 'isDisabled' | 'expirationDate' | 'ipSource'>,
  source: string,
  now: number,
): StandingFlaw | undefined {
  if (user.isDisabled) return 'disabled'
  if (user.expirationDate !== undefined && user.expirationDate <= now) return 'expired'
  return isFrom(source, user.ipSource) ? undefined : 'wrong_source'
}
