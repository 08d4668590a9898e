/** Users that an API key may act for, by X-Auth-User. */
import type { ApiKey, User } from '../model/objects.ts'
import type { ProfileRights } from '../model/profile-rights.ts'
import { covers } from '../model/profiles.ts'

/**
 * Whether the key may act for this user, whose profile has `rights`. The key names the user or one of the
 * user's groups, or has no such list; the user's rights must not exceed the key's `reach`.
 */
export function mayActFor(
  { actsFor, reach }: Pick<ApiKey, 'actsFor' | 'reach'>,
  user: Pick<User, 'id' | 'groupIds'>,
  rights: ProfileRights,
): boolean {
  if (reach && !covers(reach, rights)) return false
  if (!actsFor) return true
  return actsFor.userIds.includes(user.id) || user.groupIds.some((id) => actsFor.groupIds.includes(id))
}
