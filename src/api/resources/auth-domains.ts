import { type Static, Type } from 'typebox'
import { METHOD_TYPES } from '../../identity/methods/registry.ts'
import {
  AUTH_DOMAIN_LANGUAGES,
  type AuthDomain,
  type AuthDomainAttributes,
  type AuthDomainMapping,
  SCIM_IDENTIFIERS,
} from '../../model/external-auths.ts'
import { MAX_GROUP_NAME } from '../../model/group-names.ts'
import { hasUnprintable } from '../../model/names.ts'
import type { Id } from '../../model/objects.ts'
import { type ApiRequest, requireRight } from '../access/caller.ts'
import type { Context, ResourceContext } from '../access/context.ts'
import { registerCollection } from '../collection/collection.ts'
import { authDomainOf } from '../collection/parents.ts'
import { referred, referredIds } from '../collection/references.ts'
import { resource } from '../collection/resource.ts'
import type { Api } from '../http/deps.ts'
import { fieldError } from '../http/errors.ts'
import { check, checkName, exact, name, oneOf, partial, shown, text } from '../schema/fields.ts'
import { refuseBeyondMappings, refuseOtherType } from './external-auths.ts'
import { givenProfile } from './users.ts'

const MAX_AUTHS = 8
const domainName = name('unique; persons are NAME@DOMAIN', 'corp')
const type = oneOf(METHOD_TYPES, 'of all its external_auths')
const attribute = (what: string) =>
  Type.Union([Type.String({ pattern: '^[A-Za-z0-9_][A-Za-z0-9_;:./-]{0,127}$' }), Type.Null()], {
    description: `the server's attribute of ${what}; null: the type's usual one`,
  })
const Attributes = {
  display_name_attribute: attribute('the display name'),
  mail_attribute: attribute('the mail address'),
  language_attribute: attribute('the language'),
  group_attribute: attribute('the groups'),
  public_key_attribute: attribute('SSH public keys'),
}
const inOrder = (description: string) =>
  Type.Array(Type.String({ maxLength: 512 }), { maxItems: MAX_AUTHS, description, 'x-ordered': true })
const Fields = {
  description: text('who its persons are'),
  is_default: Type.Boolean({
    description:
      'whether names without a domain that are no local user are looked for here; one domain at most',
  }),
  external_auths: inOrder('asked in order: the next one only if one does not answer'),
  secondary_auth: inOrder('asked after the first factor, all of them'),
  ...Attributes,
  default_language: oneOf(AUTH_DOMAIN_LANGUAGES, 'where the server names none; en unless given'),
  scim_identifier: Type.Union([oneOf(SCIM_IDENTIFIERS, 'see above'), Type.Null()], {
    description:
      'provisioning by SCIM, and what binds a user to the sign-in: external_id, which is the id that the servers show, or the user_name of the first sign-in; null: no provisioning. A change forgets the persons, and what was provisioned',
  }),
}
const Create = exact({ domain_name: domainName, type, ...partial(exact(Fields)).properties })
const Update = partial(Create)
const View = exact({ ...shown, domain_name: domainName, type, ...Fields })

const NAMES = {
  displayName: 'display_name_attribute',
  email: 'mail_attribute',
  language: 'language_attribute',
  group: 'group_attribute',
  publicKey: 'public_key_attribute',
} as const satisfies Record<keyof AuthDomainAttributes, keyof typeof Attributes>
const ATTRIBUTES = Object.entries(NAMES) as [keyof AuthDomainAttributes, keyof typeof Attributes][]

/** Refuses what would need a question: tokens come with requests. @throws ApiError `invalid_field` */
function refuseQuestions(type: AuthDomain['type'], body: Static<typeof Update>): void {
  if (type !== 'OIDC' && type !== 'SAML') return
  const flaw = `persons of type ${type} sign in at a provider: no name is looked for, and nothing can be asked`
  check('is_default', body.is_default ? flaw : undefined)
  const asked = type === 'OIDC' ? (body.secondary_auth ?? []) : []
  check('secondary_auth', asked.length > 0 ? flaw : undefined)
  check('public_key_attribute', body.public_key_attribute != null ? flaw : undefined)
}

/** Refuses a domain whose persons would have the names of local users. @throws ApiError `invalid_field` */
async function refuseBesideUsers(
  { users }: ResourceContext['deps']['store'],
  domainName: string,
): Promise<void> {
  const user = await users.localAt(domainName)
  const flaw = `the local user ${user} would be taken for a person of this domain: rename that one first`
  check('domain_name', user === undefined ? undefined : flaw)
}

export function authDomainResource(context: ResourceContext) {
  const { store } = context.deps

  const authsOf = async (
    field: string,
    refs: readonly string[] | undefined,
    wanted: string,
  ): Promise<Id[] | undefined> => {
    if (refs === undefined) return undefined
    for (const [at, ref] of refs.entries()) {
      const auth = await referred(store.externalAuths, `${field}/${at}`, ref)
      if (field === 'secondary_auth' && (auth.type === 'OIDC' || auth.type === 'SAML'))
        throw fieldError('invalid_field', `${field}/${at}`, `"${ref}" is a provider, and asks no code`)
      if (field === 'external_auths' && auth.type !== wanted)
        throw fieldError(
          'invalid_field',
          `${field}/${at}`,
          `"${ref}" is of type ${auth.type}, the domain of ${wanted}`,
        )
    }
    return await referredIds(store.externalAuths, field, refs)
  }

  const changeOf = async (
    body: Static<typeof Update>,
    type: AuthDomain['type'],
    request: ApiRequest,
    own?: AuthDomain,
  ) => {
    refuseOtherType(body.type, own)
    // Persons of the former default, who type bare names, would show their passwords to these servers.
    if (body.is_default && !own?.isDefault)
      await refuseBeyondMappings(store, request, ({ isDefault }) => isDefault)
    await checkName('domain_name', body.domain_name, own, store.authDomains, 'domainName')
    if (body.domain_name !== undefined && body.domain_name !== own?.domainName)
      await refuseBesideUsers(store, body.domain_name)
    const attributes: AuthDomainAttributes = { ...own?.attributes }
    for (const [key, field] of ATTRIBUTES) {
      const given = body[field]
      if (given === null) delete attributes[key]
      else if (given !== undefined) attributes[key] = given
    }
    const first = await authsOf('external_auths', body.external_auths, type)
    refuseQuestions(type, body)
    const second = await authsOf('secondary_auth', body.secondary_auth, type)
    return {
      ...(body.domain_name !== undefined && { domainName: body.domain_name }),
      description: body.description ?? own?.description ?? '',
      isDefault: body.is_default ?? own?.isDefault ?? false,
      externalAuthIds: first ?? own?.externalAuthIds ?? [],
      secondaryAuthIds: second ?? own?.secondaryAuthIds ?? [],
      attributes,
      defaultLanguage: body.default_language ?? own?.defaultLanguage ?? 'en',
      ...(body.scim_identifier !== undefined && { scimIdentifier: body.scim_identifier ?? undefined }),
    }
  }
  const namesOf = async (ids: readonly Id[]) =>
    await Promise.all(ids.map(async (id) => (await store.externalAuths.find(id))?.authenticationName ?? id))

  return resource({
    path: '/authdomains',
    type: 'authdomain',
    title: 'Authentication domains',
    description:
      'Persons whom servers know: NAME@DOMAIN signs in by external_auths, and gets groups and a profile by the mappings. Who is renamed, or asks other servers, forgets its persons: their sessions end.',
    create: {
      schema: Create,
      async plan(body, request) {
        const change = await changeOf(body, body.type, request)
        return () => store.authDomains.create({ ...change, domainName: body.domain_name, type: body.type })
      },
    },
    update: {
      schema: Update,
      async plan(old, body, request) {
        await refuseBeyondMappings(store, request, ({ id }) => id === old.id)
        const change = await changeOf(body, old.type, request, old)
        return () => store.authDomains.update(old.id, change, old)
      },
    },
    remove: {
      async check(old, request) {
        await refuseBeyondMappings(store, request, ({ id }) => id === old.id)
        return []
      },
    },
    removeFrom: (old) => store.authDomains.remove(old.id, old),
    view: View,
    show: async (domain) => ({
      domain_name: domain.domainName,
      type: domain.type as Static<typeof View>['type'],
      description: domain.description,
      is_default: domain.isDefault,
      external_auths: await namesOf(domain.externalAuthIds),
      secondary_auth: await namesOf(domain.secondaryAuthIds),
      ...(Object.fromEntries(
        ATTRIBUTES.map(([key, field]) => [field, domain.attributes[key] ?? null]),
      ) as Record<keyof typeof Attributes, string | null>),
      default_language: domain.defaultLanguage,
      scim_identifier: domain.scimIdentifier ?? null,
    }),
    label: (domain) => String(domain['domain_name']),
    secrets: [],
    list: (_request, page) => store.authDomains.list(page),
    find: (_request, ref) => store.authDomains.find(ref),
  })
}

const userGroup = name('members of external_group belong to it', 'linux-admins')
const externalGroup = Type.String({
  minLength: 1,
  maxLength: MAX_GROUP_NAME,
  description: 'name at the server, a distinguished one whole; `*`: persons without another mapping',
  examples: ['cn=admins,ou=groups,dc=example,dc=org'],
})
const profile = name('what they may do over the API; of several mappings the oldest counts', 'user')
const MappingCreate = exact({
  user_group: userGroup,
  external_group: externalGroup,
  profile: Type.Optional(profile),
})
const MappingUpdate = partial(MappingCreate)
const MappingView = exact({
  ...shown,
  auth_domain: Type.String(),
  user_group: userGroup,
  external_group: externalGroup,
  profile,
})
const labelOf = (domain: unknown, group: unknown) => `${domain}:${group}`

export function authDomainMappingResource(context: ResourceContext) {
  const { store } = context.deps
  const parent = (request: ApiRequest) => authDomainOf(store, request)
  /** The oldest mapping of a person gives the profile: without it, a younger one with more rights would. */
  const refuseBeyondAll = ({ authDomainId }: AuthDomainMapping, request: ApiRequest) =>
    refuseBeyondMappings(store, request, ({ id }) => id === authDomainId)

  const changeOf = async (request: ApiRequest, body: Static<typeof MappingUpdate>) => {
    const group = body.external_group
    check(
      'external_group',
      group !== undefined && hasUnprintable(group)
        ? 'a name must not hold control or invisible characters'
        : undefined,
    )
    return {
      ...(body.user_group !== undefined && {
        userGroupId: (await referred(store.userGroups, 'user_group', body.user_group)).id,
      }),
      ...(group !== undefined && { externalGroup: group }),
      ...(body.profile !== undefined && { profile: await givenProfile(store, request, body.profile) }),
    }
  }

  return resource({
    path: '/authdomains/:domain/mappings',
    type: 'authdomainmapping',
    title: 'Mappings of an authentication domain',
    description:
      'External groups, and what their members get: a user group and a profile. A caller cannot give a profile with rights beyond its own, nor change or remove a mapping where another one of the domain does. Needs `user_groups: modify`, too.',
    create: {
      schema: MappingCreate,
      async plan(body, request) {
        const domain = await parent(request)
        const change = await changeOf(request, body)
        const standard = body.profile === undefined ? await givenProfile(store, request, 'user') : 'user'
        requireRight(request, 'user_groups', 'modify')
        const plan = () =>
          store.authDomainMappings.create({
            authDomainId: domain.id,
            userGroupId: '',
            externalGroup: body.external_group,
            profile: standard,
            ...change,
          })
        return Object.assign(plan, { label: labelOf(domain.domainName, body.external_group) })
      },
    },
    update: {
      schema: MappingUpdate,
      async plan(old, body, request) {
        await refuseBeyondAll(old, request)
        const change = await changeOf(request, body)
        return () => store.authDomainMappings.update(old.id, change, old)
      },
    },
    remove: {
      async check(old, request) {
        await refuseBeyondAll(old, request)
        return []
      },
    },
    removeFrom: (old) => store.authDomainMappings.remove(old.id, old),
    view: MappingView,
    show: async (mapping, read) => ({
      auth_domain: (await store.authDomains.find(mapping.authDomainId))?.domainName ?? '',
      user_group: await read.userGroup(mapping.userGroupId),
      external_group: mapping.externalGroup,
      profile: mapping.profile,
    }),
    parents: ({ authDomainId }) => ({ domain: authDomainId }),
    label: (mapping) => labelOf(mapping['auth_domain'], mapping['external_group']),
    secrets: [],
    async list(request, page) {
      return store.authDomainMappings.list(page, (await parent(request)).id)
    },
    async find(request, ref) {
      const domain = await parent(request)
      const found: AuthDomainMapping | undefined = await store.authDomainMappings.find(ref)
      return found?.authDomainId === domain.id ? found : undefined
    },
  })
}

export function registerAuthDomains(app: Api, context: Context): void {
  registerCollection(app, context, authDomainResource(context))
  registerCollection(app, context, authDomainMappingResource(context))
}
