/**
 * Ways to sign in that API keys may create. A bound key (to addresses, to a time, to some users) must not
 * create an unbound one: a short possession of the key would give permanent access from anywhere.
 */
import { isWithin, sameAddress } from '../../model/networks.ts'
import type { ActsFor, ApiKey, User } from '../../model/objects.ts'
import { covers, FACTORY_PROFILES, reaches } from '../../model/profiles.ts'
import type { Store } from '../../store/store.ts'
import { ApiError } from '../http/errors.ts'
import { type ApiRequest, callerOf } from './caller.ts'
import { rightsOf } from './profile-rights.ts'

/** @throws ApiError `key_is_bound` for a caller with an access token, or a key that is bound in any way */
export function refuseBoundKey(request: ApiRequest): void {
  const { bearer, key } = callerOf(request)
  if (bearer !== undefined) throw new ApiError('key_is_bound')
  if (key && (key.ipSource.length > 0 || key.expirationDate !== undefined || key.actsFor !== undefined)) {
    throw new ApiError('key_is_bound')
  }
}

/**
 * Checks a way to sign in from these networks and addresses (empty: from anywhere) against a key that is
 * bound to addresses.
 * @throws ApiError `key_is_bound` if it is wider than the key
 */
export function refuseUnboundWay(request: ApiRequest, from: readonly string[]): void {
  const networks = callerOf(request).key?.ipSource ?? []
  if (networks.length === 0) return
  const isBound = from.length > 0 && from.every((one) => isWithin(one, networks))
  if (!isBound) throw new ApiError('key_is_bound')
}

/** Checks a single address; see `refuseUnboundWay`. */
export function refuseUnboundAddress(request: ApiRequest, address: string | undefined): void {
  refuseUnboundWay(request, address === undefined ? [] : [sameAddress(address)])
}

/** The part of a change to a user that concerns signing in. */
export type SignInChange = Partial<
  Pick<
    User,
    | 'userName'
    | 'sshPublicKeys'
    | 'userAuths'
    | 'secondaryAuths'
    | 'ipSource'
    | 'isDisabled'
    | 'isLocked'
    | 'expirationDate'
  >
> & { hasPassword: boolean }

/**
 * Whether the change lets the user sign in by a method, from a place, at a time, or without a factor that was not possible
 * before. A new name counts, since certificates name users. `old` is undefined for a new user.
 */
export function widensSignIn(old: User | undefined, change: SignInChange): boolean {
  const { userName, sshPublicKeys = [], userAuths = [], secondaryAuths, ipSource, isDisabled } = change
  if (change.hasPassword || sshPublicKeys.some((key) => !old?.sshPublicKeys.includes(key))) return true
  if (!old) return false
  if (userName !== undefined && userName !== old.userName) return true
  if (userAuths.some((method) => !old.userAuths.includes(method))) return true
  if (secondaryAuths && old.secondaryAuths?.some((server) => !secondaryAuths.includes(server))) return true
  if (isDisabled === false && old.isDisabled) return true
  if (change.isLocked === false && old.isLocked) return true
  if ('expirationDate' in change && old.expirationDate !== undefined) {
    if (change.expirationDate === undefined || change.expirationDate > old.expirationDate) return true
  }
  if (ipSource === undefined || old.ipSource.length === 0) return false
  return ipSource.length === 0 || !ipSource.every((one) => isWithin(one, old.ipSource))
}

/**
 * Acting for a user amounts to setting the user's password: it needs the right to change users, and a profile
 * that covers the user's; acting for any user needs all rights. A caller may always let a key act for the
 * caller.
 * @throws ApiError `key_exceeds_own`
 */
export async function refuseBeyondReach(
  request: ApiRequest,
  { users, userGroups, profiles }: Pick<Store, 'users' | 'userGroups' | 'profiles'>,
  actsFor: ActsFor | undefined,
): Promise<void> {
  const { rights, user: self } = callerOf(request)
  const refuse = () => new ApiError('key_exceeds_own')
  if (!actsFor) {
    if (!covers(rights, FACTORY_PROFILES.product_administrator)) throw refuse()
    return
  }
  const members = await Promise.all(actsFor.groupIds.map((id) => userGroups.find(id)))
  const ids = new Set([...actsFor.userIds, ...members.flatMap((group) => group?.userIds ?? [])])
  const mayChangeUsers = reaches(rights.users, 'modify')
  // Users that join a group later are limited by the key's reach.
  if (actsFor.groupIds.length > 0 && !mayChangeUsers) throw refuse()
  for (const id of ids) {
    if (id === self?.id) continue
    const user = await users.find(id)
    if (user && !(mayChangeUsers && covers(rights, await rightsOf({ profiles }, user.profile))))
      throw refuse()
  }
}

/** @throws ApiError `key_exceeds_own` for a caller that could not create a key with this one's reach */
export function refuseBeyondKey(request: ApiRequest, { actsFor, reach }: ApiKey): void {
  if (actsFor && actsFor.userIds.length + actsFor.groupIds.length === 0) return
  if (!covers(callerOf(request).rights, reach ?? FACTORY_PROFILES.product_administrator)) {
    throw new ApiError('key_exceeds_own')
  }
}
