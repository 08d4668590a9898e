/** The administrator of the first start: without one no objects could be created. */
import { randomBytes } from 'node:crypto'
import type { Audit } from '../audit/events/catalogue.ts'
import type { Identities } from '../identity/chain.ts'
import type { PasswordPolicy } from '../identity/policy.ts'
import type { User } from '../model/objects.ts'
import { Secret } from '../model/secret.ts'
import { DuplicateError } from '../store/engine/errors.ts'
import type { Store } from '../store/store.ts'

export const FIRST_ADMINISTRATOR = 'admin'

/**
 * Creates the user `admin` in a store without users, with the given password or a new one. Returns a new
 * password: it is shown once and stored nowhere.
 * @throws if the password policy rejects the given password
 */
export async function firstAdministrator(
  store: Store,
  identities: Identities,
  audit: Audit,
  policy: PasswordPolicy,
  given: string | undefined,
): Promise<{ password?: string }> {
  const { items, total } = await store.users.list({ limit: 1, offset: 0 })
  const [only] = items
  // A start that was interrupted between the two steps below has left the user without a password.
  const isUnfinished =
    total === 1 &&
    only?.userName === FIRST_ADMINISTRATOR &&
    !(await store.users.secretsOf(only.id)).passwordHash
  if (total > 0 && !isUnfinished) return {}
  const flaw = given === undefined ? undefined : await policy.flawOf(given, [FIRST_ADMINISTRATOR])
  if (flaw !== undefined)
    throw new Error(`the password of ${FIRST_ADMINISTRATOR} (SALLYPORT_ADMIN_PASSWORD): ${flaw}`)
  const password = given ?? randomBytes(15).toString('base64url')
  await audit.record('object.create', {
    object_type: 'user',
    object: FIRST_ADMINISTRATOR,
    reason: 'first start',
  })
  const user =
    only ??
    (await createUnlessThere(store, {
      userName: FIRST_ADMINISTRATOR,
      displayName: 'Administrator',
      email: '',
      profile: 'product_administrator',
      userAuths: ['local_password'],
      sshPublicKeys: [],
      isDisabled: false,
      ipSource: [],
      groupIds: [],
    }))
  // Another program that starts at the moment was faster, and shows the password.
  if (!user) return {}
  await identities.setPassword(user.id, Secret.of(password))
  return given === undefined ? { password } : {}
}

async function createUnlessThere({ users }: Store, user: Omit<User, 'id'>): Promise<User | undefined> {
  try {
    return await users.create(user)
  } catch (error) {
    if (error instanceof DuplicateError) return undefined
    throw error
  }
}
