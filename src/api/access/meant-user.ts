/** Routes below a user's own name, which some callers may use for others. */
import type { User } from '../../model/objects.ts'
import type { Store } from '../../store/store.ts'
import { ApiError } from '../http/errors.ts'
import { type ApiRequest, callerOf } from './caller.ts'

/**
 * Returns the user of the path: the caller, or another one that it may see.
 * @throws ApiError `not_found`
 */
export async function meantUser(
  { users }: Pick<Store, 'users'>,
  request: ApiRequest,
  seesOthers: boolean,
): Promise<User> {
  const { ref } = request.params as { ref: string }
  const user = await users.find(ref)
  if (!user || (!seesOthers && user.id !== callerOf(request).user?.id)) throw new ApiError('not_found')
  return user
}
