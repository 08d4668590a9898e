/** API keys: random, shown once, kept as a hash. */
import { Buffer } from 'node:buffer'
import { type Static, Type } from 'typebox'
import type { ActsFor, ApiKey } from '../../model/objects.ts'
import { hashOfKey } from '../access/authenticate.ts'
import { callerOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { rightsOf } from '../access/profile-rights.ts'
import { refuseBeyondKey, refuseBeyondReach, refuseBoundKey } from '../access/ways-in.ts'
import { registerCollection } from '../collection/collection.ts'
import { localUsers, referredIds } from '../collection/references.ts'
import type { Api } from '../http/deps.ts'
import { fieldError } from '../http/errors.ts'
import {
  checkName,
  checkNetworks,
  exact,
  ipSource,
  name,
  names,
  partial,
  shown,
  timeOf,
  timeOrNull,
  timeText,
} from '../schema/fields.ts'
import { givenProfile, refuseBeyondOwn } from './users.ts'

const KEY_BYTES = 32
/** Makes a leaked key recognizable. */
const KEY_PREFIX = 'sallyport_'

const keyName = name('unique', 'ci')
const profile = name(
  'profile: what the key may do; with X-Auth-User the lower right of key and user wins',
  'operator',
)
const orNull = (description: string) => Type.Union([names(description), Type.Null()], { description })
const actingFields = {
  users: orNull('users whom X-Auth-User may name; null here and in `user_groups`: anybody'),
  user_groups: orNull('groups whose members, when it is used, X-Auth-User may name'),
}
const Create = exact({
  key_name: keyName,
  profile,
  ip_source: Type.Optional(ipSource),
  expiration_date: Type.Optional(timeOrNull('refused from then on; null: never')),
  users: Type.Optional(actingFields.users),
  user_groups: Type.Optional(actingFields.user_groups),
})
const Update = partial(Create)
const View = exact({
  ...shown,
  key_name: keyName,
  profile,
  ip_source: ipSource,
  expiration_date: timeOrNull('null: never'),
  ...actingFields,
  created_at: Type.String({ format: 'date-time' }),
  api_key: Type.Optional(Type.String({ description: 'the key itself: only in the answer that created it' })),
})

export function registerApiKeys(app: Api, context: Context): void {
  const { store, randomBytes, clock } = context.deps
  /** Texts of new keys, until the answer that shows them. */
  const fresh = new WeakMap<ApiKey, string>()

  const changeOf = async (
    body: Static<typeof Update>,
    own?: ApiKey,
  ): Promise<Partial<Omit<ApiKey, 'id'>>> => {
    await checkName('key_name', body.key_name, own, store.apiKeys, 'keyName')
    checkNetworks('ip_source', body.ip_source)
    return {
      ...(body.key_name !== undefined && { keyName: body.key_name }),
      ...(body.ip_source !== undefined && { ipSource: body.ip_source }),
      ...(body.expiration_date !== undefined && {
        expirationDate: timeOf('expiration_date', body.expiration_date),
      }),
    }
  }

  /**
   * Returns the users for whom the key is to act, and the rights that limit it, or undefined if the body has
   * no such field.
   */
  const actingOf = async (
    { users, user_groups: groups }: Static<typeof Update>,
    old?: ActsFor,
  ): Promise<{ actsFor: ActsFor | undefined } | undefined> => {
    if (users === undefined && groups === undefined) return undefined
    const given = [users, groups].filter((one) => one !== undefined)
    if (given.every((one) => one === null)) return { actsFor: undefined }
    if (given.includes(null)) {
      const message = 'null means anybody: then both users and user_groups are null, or not named'
      throw fieldError('invalid_field', users === null ? 'users' : 'user_groups', message)
    }
    return {
      actsFor: {
        userIds: users ? await referredIds(localUsers(store), 'users', users) : (old?.userIds ?? []),
        groupIds: groups ? await referredIds(store.userGroups, 'user_groups', groups) : (old?.groupIds ?? []),
      },
    }
  }

  registerCollection(app, context, {
    path: '/apikeys',
    type: 'apikey',
    title: 'API keys',
    description:
      'Keys for machines, sent as X-Auth-Key. The key is shown once, in the answer to POST. With `users` or `user_groups` it can act only for those (X-Auth-User), else for any user, which only a creator with all rights can allow. It never acts for a user whose profile has rights beyond those of its creator.',
    create: {
      schema: Create,
      async plan(body, request) {
        refuseBoundKey(request)
        const profile = await givenProfile(store, request, body.profile)
        const change = await changeOf(body)
        const { actsFor } = (await actingOf(body)) ?? {}
        await refuseBeyondReach(request, store, actsFor)
        const acting = { reach: callerOf(request).rights, ...(actsFor && { actsFor }) }
        return async () => {
          const text = KEY_PREFIX + Buffer.from(randomBytes(KEY_BYTES)).toString('base64url')
          const key = await store.apiKeys.createWithHash(
            { keyName: body.key_name, ipSource: [], createdAt: clock(), ...change, ...acting, profile },
            hashOfKey(text),
          )
          fresh.set(key, text)
          return key
        }
      },
    },
    update: {
      schema: Update,
      async plan(old, body, request) {
        refuseBoundKey(request)
        refuseBeyondOwn(request, await rightsOf(store, old.profile))
        const change = await changeOf(body, old)
        const acting = await actingOf(body, old.actsFor)
        if (acting) {
          await refuseBeyondReach(request, store, acting.actsFor)
          Object.assign(change, acting, { reach: callerOf(request).rights })
        } else refuseBeyondKey(request, old)
        if (body.profile !== undefined) change.profile = await givenProfile(store, request, body.profile)
        return () => store.apiKeys.update(old.id, change, old)
      },
    },
    remove: {
      async check(old, request) {
        refuseBeyondOwn(request, await rightsOf(store, old.profile))
        return []
      },
    },
    removeFrom: (old) => store.apiKeys.remove(old.id, old),
    view: View,
    async show(key, read) {
      const text = fresh.get(key)
      return {
        key_name: key.keyName,
        profile: key.profile,
        ip_source: key.ipSource,
        expiration_date: key.expirationDate === undefined ? null : timeText(key.expirationDate),
        users: key.actsFor ? await read.users(key.actsFor.userIds) : null,
        user_groups: key.actsFor ? await read.userGroups(key.actsFor.groupIds) : null,
        created_at: timeText(key.createdAt),
        ...(text !== undefined && { api_key: text }),
      }
    },
    label: (key) => String(key['key_name']),
    secrets: [],
    once: ['api_key'],
    list: (_request, page) => store.apiKeys.list(page),
    find: (_request, ref) => store.apiKeys.find(ref),
  })
}
