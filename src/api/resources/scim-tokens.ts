/** `/authdomains/NAME/scimtokens`: tokens by which a provider provisions the persons of the domain. */
import { Buffer } from 'node:buffer'
import { type Static, Type } from 'typebox'
import type { ScimToken } from '../../store/store.ts'
import { hashOfKey } from '../access/authenticate.ts'
import type { ApiRequest } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { refuseBoundKey } from '../access/ways-in.ts'
import { registerCollection } from '../collection/collection.ts'
import { authDomainOf } from '../collection/parents.ts'
import type { Api } from '../http/deps.ts'
import { fieldError } from '../http/errors.ts'
import {
  checkNetworks,
  exact,
  ipSource,
  name,
  partial,
  shown,
  timeOf,
  timeOrNull,
  timeText,
} from '../schema/fields.ts'
import { refuseBeyondMappings } from './external-auths.ts'

/** The old one and the new one, while a provider changes from one to the other. */
const MAX_TOKENS = 2
const TOKEN_BYTES = 32
/** Makes a leaked token recognizable. */
const PREFIX = 'sallyport_scim_'

const tokenName = name('unique in the domain', 'entra-2026')
const Create = exact({
  token_name: tokenName,
  ip_source: Type.Optional(ipSource),
  expiration_date: Type.Optional(timeOrNull('refused from then on; null: never')),
})
const Update = partial(Create)
const View = exact({
  ...shown,
  token_name: tokenName,
  ip_source: ipSource,
  expiration_date: timeOrNull('null: never'),
  created_at: Type.String({ format: 'date-time' }),
  last_used_at: timeOrNull('to the minute; null: never'),
  last_used_from: Type.String({ description: 'address of the client' }),
  token: Type.Optional(Type.String({ description: 'the token itself: only in the answer that created it' })),
})

export function registerScimTokens(app: Api, context: Context): void {
  const { store, randomBytes, clock } = context.deps
  /** Texts of new tokens, until the answer that shows them. */
  const fresh = new WeakMap<ScimToken, string>()

  /** A provider decides who the persons are, and by the mappings what they get. */
  const allowed = async (request: ApiRequest) => {
    refuseBoundKey(request)
    const domain = await authDomainOf(store, request)
    await refuseBeyondMappings(store, request, ({ id }) => id === domain.id)
    return domain
  }
  const changeOf = async (body: Static<typeof Update>, domainId: string, own?: ScimToken) => {
    const other =
      body.token_name === undefined ? undefined : await store.scimTokens.find(domainId, body.token_name)
    if (other && other.id !== own?.id)
      throw fieldError('duplicate', 'token_name', `the token "${other.tokenName}" exists in this domain`)
    checkNetworks('ip_source', body.ip_source)
    return {
      ...(body.token_name !== undefined && { tokenName: body.token_name }),
      ...(body.ip_source !== undefined && { ipSource: body.ip_source }),
      ...(body.expiration_date !== undefined && {
        expirationDate: timeOf('expiration_date', body.expiration_date),
      }),
    } as Partial<Omit<ScimToken, 'id' | 'authDomainId'>>
  }

  registerCollection(app, context, {
    path: '/authdomains/:domain/scimtokens',
    type: 'scimtoken',
    title: 'SCIM tokens of an authentication domain',
    description:
      'Tokens for the provider that provisions the persons of the domain at /scim/v2, sent as Authorization: Bearer. A token is shown once, in the answer to POST; two at most. They count while the domain has a scim_identifier. A caller needs the rights of every profile that a mapping of the domain gives.',
    create: {
      schema: Create,
      async plan(body, request) {
        const domain = await allowed(request)
        const change = await changeOf(body, domain.id)
        return async () => {
          const text = PREFIX + Buffer.from(randomBytes(TOKEN_BYTES)).toString('base64url')
          const token = await store.scimTokens.create(
            {
              ...{ authDomainId: domain.id, tokenName: body.token_name, ipSource: [], lastAddress: '' },
              ...{ createdAt: clock(), ...change },
            },
            hashOfKey(text),
            MAX_TOKENS,
          )
          fresh.set(token, text)
          return token
        }
      },
    },
    update: {
      schema: Update,
      async plan(old, body, request) {
        const domain = await allowed(request)
        const change = await changeOf(body, domain.id, old)
        return () => store.scimTokens.update(old.id, change, old)
      },
    },
    remove: {
      async check(_old, request) {
        await allowed(request)
        return []
      },
    },
    removeFrom: (old) => store.scimTokens.remove(old.id),
    view: View,
    show: async (token) => {
      const text = fresh.get(token)
      return {
        token_name: token.tokenName,
        ip_source: token.ipSource,
        expiration_date: token.expirationDate === undefined ? null : timeText(token.expirationDate),
        created_at: timeText(token.createdAt),
        last_used_at: token.lastUsed === undefined ? null : timeText(token.lastUsed),
        last_used_from: token.lastAddress,
        ...(text !== undefined && { token: text }),
      }
    },
    parents: ({ authDomainId }) => ({ domain: authDomainId }),
    label: (token) => String(token['token_name']),
    secrets: [],
    once: ['token'],
    list: async (request, page) => store.scimTokens.list(page, (await authDomainOf(store, request)).id),
    find: async (request, ref) => store.scimTokens.find((await authDomainOf(store, request)).id, ref),
  })
}
