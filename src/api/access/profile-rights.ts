import type { ProfileRights } from '../../model/profile-rights.ts'
import { NOTHING } from '../../model/profiles.ts'
import type { Store } from '../../store/store.ts'

/** Returns the rights of a profile by its name; a deleted one has none. */
export async function rightsOf(store: Pick<Store, 'profiles'>, profile: string): Promise<ProfileRights> {
  return (await store.profiles.rightsOf(profile)) ?? NOTHING
}
