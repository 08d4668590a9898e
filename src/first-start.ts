/** The administrator of the first start: without one nobody could provision anything. */
import { randomBytes } from 'node:crypto'
import type { Identities } from './identity/chain.ts'
import { Secret } from './model/secret.ts'
import type { Store } from './store/store.ts'

export const FIRST_ADMINISTRATOR = 'admin'

/**
 * Creates the user `admin` in a store without users, with the password given or a new one. Returns the password
 * when it was made here: it is shown once and kept nowhere.
 */
export async function firstAdministrator(
  store: Store,
  identities: Identities,
  given: string | undefined,
): Promise<{ created: boolean; password?: string }> {
  const { total } = await store.users.list({ limit: 1, offset: 0 })
  if (total > 0) return { created: false }
  const password = given ?? randomBytes(15).toString('base64url')
  const user = await store.users.create({
    userName: FIRST_ADMINISTRATOR,
    displayName: 'Administrator',
    email: '',
    profile: 'product_administrator',
    userAuths: ['local_password'],
    sshPublicKeys: [],
    isDisabled: false,
    ipSource: [],
    groupIds: [],
  })
  await identities.setPassword(user.id, Secret.of(password))
  return given === undefined ? { created: true, password } : { created: true }
}
