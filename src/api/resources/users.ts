import { Buffer } from 'node:buffer'
import { type Static, Type } from 'typebox'
import { sealHash } from '../../identity/hashes.ts'
import { MAX_PASSWORD_BYTES } from '../../identity/password.ts'
import { PublicKeyError, parseAuthorizedKey } from '../../identity/public-key.ts'
import { forgive, lockedOut } from '../../identity/shared-lockout.ts'
import { looksLikeId, userNameError } from '../../model/names.ts'
import { USER_AUTHS, type User } from '../../model/objects.ts'
import type { ProfileRights } from '../../model/profile-rights.ts'
import { covers } from '../../model/profiles.ts'
import { Secret } from '../../model/secret.ts'
import type { Store } from '../../store/store.ts'
import { type ApiRequest, callerOf, requireRight } from '../access/caller.ts'
import type { Context, ResourceContext } from '../access/context.ts'
import { rightsOf } from '../access/profile-rights.ts'
import { refuseUnboundWay, widensSignIn } from '../access/ways-in.ts'
import { registerCollection } from '../collection/collection.ts'
import { localUsers, type Names, placeFields, referred, referredIds } from '../collection/references.ts'
import { announced, type PlannedEvent, resource } from '../collection/resource.ts'
import type { Api } from '../http/deps.ts'
import { ApiError, fieldError } from '../http/errors.ts'
import {
  check,
  checkNetworks,
  exact,
  ipSource,
  name,
  names,
  partial,
  shown,
  text,
  timeOf,
  timeOrNull,
  timeText,
} from '../schema/fields.ts'

const isLocked = Type.Boolean({
  description:
    'true: no access of any kind until an administrator sets false, which also ends a lock-out by wrong passwords. Shown as true during a lock-out too; a search finds the locks of administrators',
})
const signInMethod = Type.String({
  minLength: 1,
  maxLength: 128,
  description: 'local_password, local_sshkey, or the name of an external authentication',
  examples: ['local_sshkey'],
})
const secondaryAuth = Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
  maxItems: 4,
  description: 'external authentications, each asked for a second factor after the password or the key',
  examples: [['codes']],
})
const optional = {
  display_name: Type.Optional(text('the person, as auditors read it')),
  email: Type.Optional(Type.String({ maxLength: 254, pattern: '^$|^[^@\\s]+@[^@\\s]+$' })),
  user_auths: Type.Optional(
    Type.Array(signInMethod, {
      maxItems: 16,
      description: 'methods that may be used; the two of the broker itself unless named',
    }),
  ),
  secondary_auth: Type.Optional(secondaryAuth),
  ssh_public_keys: Type.Optional(
    Type.Array(Type.String({ maxLength: 16384 }), {
      maxItems: 100,
      description: '`ssh-ed25519 AAAA… comment`, without options',
    }),
  ),
  is_disabled: Type.Optional(Type.Boolean({ description: 'no access of any kind' })),
  is_locked: Type.Optional(isLocked),
  expiration_date: Type.Optional(timeOrNull('no access from then on; null: never')),
  ip_source: Type.Optional(ipSource),
  groups: Type.Optional(names('user groups')),
}
const profile = name('profile: what the user may do over the API', 'user')
const userName = name('unique', 'ops1')

const Create = exact({
  user_name: userName,
  profile: Type.Optional(profile),
  password: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_PASSWORD_BYTES,
      description:
        'never comes back; long enough, no common one, and no name of the user (docs/operations.md, Passwords)',
    }),
  ),
  ...optional,
})
const Update = partial(Create)
export const lastSignIn = timeOrNull('to the minute, over any protocol; null: none is known')
const View = exact({
  ...shown,
  user_name: userName,
  profile,
  display_name: Type.String(),
  email: Type.String(),
  user_auths: Type.Array(signInMethod),
  secondary_auth: secondaryAuth,
  ssh_public_keys: Type.Array(Type.String()),
  is_disabled: Type.Boolean(),
  is_locked: isLocked,
  expiration_date: timeOrNull('null: never'),
  ip_source: ipSource,
  groups: names('user groups'),
  last_sign_in: lastSignIn,
})

/** Returns when the user has signed in last, as a text. */
export async function lastSignInOf(
  read: Pick<Names, 'lastSignIn'>,
  { id }: Pick<User, 'id'>,
): Promise<string | null> {
  const time = await read.lastSignIn(id)
  return time === undefined ? null : timeText(time)
}

export function userResource(context: ResourceContext) {
  const { clock, store, passwords, vault } = context.deps
  /** Read once for each answer. */
  const locked = new WeakMap<Names, ReturnType<typeof lockedOut>>()
  const isLockedOut = async (userName: string, read: Names): Promise<boolean> => {
    const known = locked.get(read) ?? lockedOut(store.lockouts, clock())
    locked.set(read, known)
    return (await known)(userName)
  }

  /** @throws ApiError `unknown_reference`, `invalid_field` */
  const serverOf = async (field: string, one: string): Promise<string> => {
    const auth = await referred(store.externalAuths, field, one)
    if (auth.type === 'OIDC' || auth.type === 'SAML')
      throw fieldError('invalid_field', field, `"${one}" is a provider of persons of a domain only`)
    return auth.authenticationName
  }

  /** @throws ApiError `unknown_reference`, `invalid_field` */
  const secondariesOf = async (names: readonly string[]): Promise<string[]> => {
    const found = names.map((one, at) => serverOf(`secondary_auth/${at}`, one))
    return [...new Set(await Promise.all(found))]
  }

  /** @throws ApiError `unknown_reference`, `invalid_field` */
  const methodsOf = async (names: readonly string[]): Promise<string[]> => {
    const found = names.map(async (one, at) => {
      if ((USER_AUTHS as readonly string[]).includes(one)) return one
      return await serverOf(`user_auths/${at}`, one)
    })
    return [...new Set(await Promise.all(found))]
  }

  const changeOf = async (body: Static<typeof Update>, own?: User): Promise<Partial<Omit<User, 'id'>>> => {
    // Existing names may be older than the rules.
    if (body.user_name !== undefined && body.user_name !== own?.userName) {
      check('user_name', userNameError(body.user_name))
      await refuseNameOfDomain(store, body.user_name)
    }
    for (const [index, key] of (body.ssh_public_keys ?? []).entries()) {
      check(`ssh_public_keys/${index}`, publicKeyError(key))
    }
    checkNetworks('ip_source', body.ip_source)
    return {
      ...(body.user_name !== undefined && { userName: body.user_name.normalize('NFC') }),
      ...(body.display_name !== undefined && { displayName: body.display_name }),
      ...(body.email !== undefined && { email: body.email }),
      ...(body.user_auths !== undefined && { userAuths: await methodsOf(body.user_auths) }),
      ...(body.secondary_auth !== undefined && {
        secondaryAuths: await secondariesOf(body.secondary_auth),
      }),
      ...(body.ssh_public_keys !== undefined && { sshPublicKeys: body.ssh_public_keys }),
      ...(body.is_disabled !== undefined && { isDisabled: body.is_disabled }),
      ...(body.is_locked !== undefined && { isLocked: body.is_locked }),
      ...(body.expiration_date !== undefined && {
        expirationDate: timeOf('expiration_date', body.expiration_date),
      }),
      ...(body.ip_source !== undefined && { ipSource: body.ip_source }),
      ...(body.groups !== undefined && {
        groupIds: await referredIds(store.userGroups, 'groups', body.groups),
      }),
    }
  }
  const hashOf = async (text: string, names: (string | undefined)[]): Promise<string> => {
    if (Buffer.byteLength(text) > MAX_PASSWORD_BYTES) {
      throw fieldError('invalid_field', 'password', `expected ${MAX_PASSWORD_BYTES} bytes at most`)
    }
    const flaw = await passwords.policy.flawOf(
      text,
      names.filter((name) => name !== undefined),
    )
    if (flaw !== undefined) throw fieldError('weak_password', 'password', flaw)
    const password = Secret.of(text)
    try {
      return await passwords.hash(password)
    } finally {
      password.wipe()
    }
  }
  /** Whether the groups stay the same: a client may send the whole object to change something else. */
  const areGroupsOf = async ({ groupIds }: User, refs: readonly string[]): Promise<boolean> => {
    const groups = await Promise.all(refs.map((ref) => store.userGroups.find(ref)))
    const wanted = new Set(groups.map((group) => group?.id))
    return wanted.size === groupIds.length && groupIds.every((id) => wanted.has(id))
  }
  const refuseDuplicate = async (userName: string | undefined, own?: User): Promise<void> => {
    const other =
      userName === undefined || userName === own?.userName
        ? undefined
        : await store.users.lookingLike(userName)
    if (other && other.id !== own?.id)
      throw fieldError(
        'duplicate',
        'user_name',
        `the user "${other.userName}" exists, or shows as this one does`,
      )
  }

  return resource({
    path: '/users',
    type: 'user',
    title: 'Users',
    description:
      'Users. A caller can neither assign a profile with rights beyond its own, nor change a user that has one.',
    create: {
      schema: Create,
      async plan(body, request) {
        const profile = await givenProfile(store, request, body.profile ?? 'user')
        if ((body.groups ?? []).length > 0) requireRight(request, 'user_groups', 'modify')
        const change = await changeOf(body)
        if (widensSignIn(undefined, { ...change, hasPassword: body.password !== undefined }))
          refuseUnboundWay(request, change.ipSource ?? [])
        await refuseDuplicate(change.userName)
        const hash = body.password === undefined ? undefined : await hashOf(body.password, namesOf(body))
        return async () => {
          const user = await store.users.create({
            userName: body.user_name,
            displayName: '',
            email: '',
            userAuths: [...USER_AUTHS],
            sshPublicKeys: [],
            isDisabled: false,
            ipSource: [],
            groupIds: [],
            ...change,
            profile,
          })
          if (hash === undefined) return user
          await store.users.setPasswordHash(user.id, sealHash(vault, user.id, hash))
          return (await store.users.find(user.id)) ?? user
        }
      },
    },
    update: {
      schema: Update,
      async plan(old, body, request) {
        refuseBeyondOwn(request, await rightsOf(store, old.profile))
        if (body.groups && !(await areGroupsOf(old, body.groups)))
          requireRight(request, 'user_groups', 'modify')
        const change = await changeOf(body, old)
        if (widensSignIn(old, { ...change, hasPassword: body.password !== undefined }))
          refuseUnboundWay(request, change.ipSource ?? old.ipSource)
        if (body.profile !== undefined) change.profile = await givenProfile(store, request, body.profile)
        await refuseDuplicate(change.userName, old)
        const hash =
          body.password === undefined
            ? undefined
            : await hashOf(body.password, [
                ...namesOf(body),
                ...namesOf({ user_name: old.userName, display_name: old.displayName, email: old.email }),
              ])
        const subject = { object_type: 'user', object: old.userName }
        const events = hash === undefined ? [] : [{ code: 'secret.change' as const, fields: subject }]
        return announced(events, async () => {
          const user = await store.users.update(old.id, change, old)
          if (body.is_locked === false) await forgive(store.lockouts, old.userName)
          if (hash !== undefined) await store.users.setPasswordHash(old.id, sealHash(vault, old.id, hash))
          return hash === undefined ? user : ((await store.users.find(old.id)) ?? user)
        })
      },
    },
    remove: { check: (old, request) => removalOf(context, old, request) },
    removeFrom: (old) => store.users.remove(old.id, old),
    view: View,
    show: async (user, read) => ({
      user_name: user.userName,
      profile: user.profile,
      display_name: user.displayName,
      email: user.email,
      user_auths: user.userAuths,
      secondary_auth: user.secondaryAuths ?? [],
      ssh_public_keys: user.sshPublicKeys,
      is_disabled: user.isDisabled,
      is_locked: user.isLocked === true || (!read.isForTable && (await isLockedOut(user.userName, read))),
      expiration_date: user.expirationDate === undefined ? null : timeText(user.expirationDate),
      ip_source: user.ipSource,
      groups: await read.userGroups(user.groupIds),
      last_sign_in: read.isForTable ? null : await lastSignInOf(read, user),
    }),
    label: (user) => String(user['user_name']),
    secrets: ['password'],
    list: (_request, page) => store.users.list(page),
    find: (_request, ref) => localUsers(store).find(ref),
  })
}

/**
 * Returns the events of what ends with a user: checkouts.
 * @throws ApiError `profile_exceeds_own` for a user with rights beyond the caller's
 */
export async function removalOf(
  context: ResourceContext,
  old: User,
  request: ApiRequest,
): Promise<readonly PlannedEvent[]> {
  refuseBeyondOwn(request, await rightsOf(context.deps.store, old.profile))
  return await checkoutEndsOf(context, old)
}

/** Returns the events of the checkouts that end with a user. */
export async function checkoutEndsOf(
  { deps: { clock, store } }: Pick<ResourceContext, 'deps'>,
  old: User,
): Promise<readonly PlannedEvent[]> {
  const out = await store.checkouts.ofUser(old.id, clock())
  return Promise.all(
    out.map(async ({ id, accountId, apiKey = '' }) => ({
      code: 'checkout.expired' as const,
      fields: {
        ...placeFields((await store.accounts.meant({ account: accountId }, 1))[0]),
        user: old.userName,
        // The checkout's key, not the one of the caller that removes the user.
        api_key: apiKey,
        object: id,
        reason: 'the user was removed',
      },
    })),
  )
}

export function registerUsers(app: Api, context: Context): void {
  registerCollection(app, context, userResource(context))
}

/** Refuses a name that would be taken for a person's. @throws ApiError `invalid_field` */
async function refuseNameOfDomain(
  { authDomains }: ResourceContext['deps']['store'],
  userName: string,
): Promise<void> {
  const at = userName.lastIndexOf('@')
  const suffix = userName.slice(at + 1)
  const domain = at === -1 || looksLikeId(suffix) ? undefined : await authDomains.find(suffix)
  const flaw = `persons of the domain ${suffix} have such names: expected one without @${suffix}`
  check('user_name', domain ? flaw : undefined)
}

/** Returns the texts that may not be the user's password. */
function namesOf(body: Static<typeof Update>): (string | undefined)[] {
  return [body.user_name, body.display_name, body.email?.split('@')[0]]
}

function publicKeyError(line: string): string | undefined {
  try {
    parseAuthorizedKey(line)
    return undefined
  } catch (error) {
    if (error instanceof PublicKeyError) return error.message
    throw error
  }
}

/** @throws ApiError `profile_exceeds_own` */
export function refuseBeyondOwn(request: ApiRequest, rights: ProfileRights): void {
  if (!covers(callerOf(request).rights, rights)) throw new ApiError('profile_exceeds_own')
}

/**
 * Returns the profile's name, which the caller may assign.
 * @throws ApiError `unknown_reference`, `profile_exceeds_own`
 */
export async function givenProfile(store: Store, request: ApiRequest, ref: string): Promise<string> {
  const profile = await referred(store.profiles, 'profile', ref)
  refuseBeyondOwn(request, profile.rights)
  return profile.profileName
}
