import { type Static, Type } from 'typebox'
import { sealExternal } from '../../identity/external-secrets.ts'
import { signingKeyFlaw } from '../../identity/methods/oidc/client.ts'
import { METHOD_TYPES } from '../../identity/methods/registry.ts'
import type { AuthDomain } from '../../model/external-auths.ts'
import {
  EXTERNAL_AUTH_SECRETS,
  type ExternalAuth,
  type ExternalAuthType,
  type ExternalServer,
  MAX_OFFLINE_S,
  OFFLINE_TYPES,
  type OidcOptions,
} from '../../model/external-auths.ts'
import { nameKey } from '../../model/names.ts'
import { type Id, USER_AUTHS } from '../../model/objects.ts'
import { Secret } from '../../model/secret.ts'
import type { Store } from '../../store/store.ts'
import { type ApiRequest, requireRight } from '../access/caller.ts'
import type { Context, ResourceContext } from '../access/context.ts'
import { rightsOf } from '../access/profile-rights.ts'
import { registerCollection } from '../collection/collection.ts'
import { announced, resource } from '../collection/resource.ts'
import type { Api } from '../http/deps.ts'
import { fieldError } from '../http/errors.ts'
import {
  hostFlaw,
  Kerberos,
  kerberosOptionsOf,
  kerberosShown,
  keytabFlaw,
  Ldap,
  ldapOptionsOf,
  ldapShown,
  Radius,
  radiusOptionsOf,
  radiusShown,
  Tacacs,
  tacacsOptionsOf,
  tacacsShown,
} from '../schema/external-auth-options.ts'
import { check, checkName, exact, name, names, oneOf, partial, shown, text } from '../schema/fields.ts'
import { issuerServer, Oidc, oidcOptionsOf, oidcShown } from '../schema/oidc-options.ts'
import { ownPairOf } from '../schema/saml-keys.ts'
import { idpServer, Saml, samlOptionsOf, samlShown } from '../schema/saml-options.ts'
import { refuseBeyondOwn } from './users.ts'

const MAX_SERVERS = 8
const SECRETS = [
  'bind_password',
  'client_key',
  'shared_secret',
  'keytab',
  'client_secret',
  'private_key',
  'next_private_key',
] as const
/** Fields with the options of each type. */
export const SECTIONS = {
  LDAP: 'ldap',
  RADIUS: 'radius',
  TACACS: 'tacacs',
  KERBEROS: 'kerberos',
  OIDC: 'oidc',
  SAML: 'saml',
} as const satisfies Record<(typeof METHOD_TYPES)[number], string>
const authenticationName = name('unique; also a sign-in method of users', 'directory')
const host = Type.String({
  minLength: 1,
  maxLength: 253,
  description: 'name or address',
  examples: ['ldap1.example.org'],
})
const port = Type.Union([Type.Integer({ minimum: 1, maximum: 65535 }), Type.Null()], {
  description: "null: the type's usual one",
})
const Server = exact({ host, port: Type.Optional(port) })
const timeout = Type.Integer({
  minimum: 1,
  maximum: 60,
  description: 'seconds that each server has for an answer; 5 unless given',
})
const offline = Type.Integer({
  minimum: 0,
  maximum: MAX_OFFLINE_S,
  description:
    'seconds for which a password that was accepted signs in while no server answers; 0 unless given: none. LDAP and KERBEROS only',
})
const secret = (what: string) =>
  Type.Optional(
    Type.Union([Type.String({ minLength: 1, maxLength: 16_384 }), Type.Null()], {
      description: `${what}; never comes back, null removes it`,
    }),
  )
const Create = exact({
  authentication_name: authenticationName,
  type: oneOf(METHOD_TYPES, 'what the servers speak'),
  host: Type.Optional(host),
  port: Type.Optional(port),
  backup_servers: Type.Optional(
    Type.Array(Server, {
      maxItems: MAX_SERVERS - 1,
      description: 'asked in order when the first does not answer',
      'x-ordered': true,
    }),
  ),
  description: Type.Optional(text('what the servers are')),
  timeout: Type.Optional(timeout),
  offline: Type.Optional(offline),
  ldap: Type.Optional(Ldap),
  radius: Type.Optional(Radius),
  tacacs: Type.Optional(Tacacs),
  kerberos: Type.Optional(Kerberos),
  oidc: Type.Optional(Oidc),
  saml: Type.Optional(Saml),
  bind_password: secret('password of ldap/bind_dn'),
  client_key: secret('PEM of the key of ldap/client_certificate'),
  shared_secret: secret('secret that a RADIUS or TACACS+ server has for this client'),
  keytab: secret('base64 of the keytab with the key of kerberos/service_principal'),
  client_secret: secret('secret of oidc/client_id at the issuer'),
  private_key: secret(
    'PEM of the key by which oidc/client_id proves itself at the issuer, or of saml/own_certificate',
  ),
  next_private_key: secret('PEM of the key of saml/next_certificate'),
})
const Update = partial(Create)
const View = exact({
  ...shown,
  authentication_name: authenticationName,
  type: oneOf(METHOD_TYPES, 'what the servers speak'),
  host,
  port,
  backup_servers: Type.Array(exact({ host, port })),
  description: Type.String(),
  timeout,
  offline,
  ldap: Ldap,
  radius: Radius,
  tacacs: Tacacs,
  kerberos: Kerberos,
  oidc: Oidc,
  saml: Saml,
  secrets: names('those that are set'),
})

type Change = Pick<ExternalAuth, 'servers' | 'timeoutMs' | 'offlineS' | 'options' | 'description'> & {
  authenticationName?: string
  /** Key that was made for the options. */
  madeKey?: Secret
}

/** @throws ApiError `invalid_field` for options and secrets of another type */
function refuseForeign(body: Static<typeof Update>, type: ExternalAuthType): void {
  const own: readonly string[] = EXTERNAL_AUTH_SECRETS[type]
  const foreign = [
    ...Object.values(SECTIONS).filter((section) => section !== SECTIONS[type as keyof typeof SECTIONS]),
    ...SECRETS.filter((one) => !own.includes(one)),
  ]
  for (const field of foreign) {
    // An import has every column: an empty one says nothing.
    const value = body[field]
    const isSaid = value != null && (typeof value === 'string' || Object.keys(value).length > 0)
    check(field, isSaid ? `servers of type ${type} have no such field` : undefined)
  }
}

function commonOf(
  { authentication_name, description, timeout, offline: seconds }: Static<typeof Update>,
  type: ExternalAuthType,
  own?: ExternalAuth,
) {
  const isTaken = OFFLINE_TYPES.includes(type)
  check('offline', seconds && !isTaken ? `servers of type ${type} may take codes of one time` : undefined)
  return {
    ...(authentication_name !== undefined && { authenticationName: authentication_name }),
    description: description ?? own?.description ?? '',
    timeoutMs: timeout === undefined ? (own?.timeoutMs ?? 5000) : timeout * 1000,
    offlineS: seconds ?? own?.offlineS ?? 0,
  }
}

/** @throws ApiError `invalid_field` */
function serversOf(body: Static<typeof Update>, own?: ExternalAuth): ExternalServer[] {
  const [first = { host: '' }, ...others] = own?.servers ?? []
  const servers = [
    { host: body.host ?? first.host, port: body.port === undefined ? first.port : body.port },
    ...(body.backup_servers ?? others),
  ].map(({ host, port }) => ({ host, ...(port != null && { port }) }))
  for (const [at, { host }] of servers.entries())
    check(at === 0 ? 'host' : `backup_servers/${at - 1}/host`, hostFlaw(host))
  return servers
}

/** Returns the place that the options say. @throws ApiError `invalid_field` if the body says another one */
function placeOf(
  { host, port, backup_servers: others = [] }: Static<typeof Update>,
  place: ExternalServer,
  why: string,
): ExternalServer {
  const flaw = `${why}: leave this out`
  check('host', host !== undefined && host !== place.host ? flaw : undefined)
  check('port', port != null && port !== place.port ? flaw : undefined)
  check('backup_servers', others.length > 0 ? flaw : undefined)
  return place
}

export function externalAuthResource(context: ResourceContext) {
  const { clock, store, vault } = context.deps

  const changeOf = async (
    body: Static<typeof Update>,
    type: ExternalAuthType,
    own?: ExternalAuth,
  ): Promise<Change> => {
    refuseOtherType(body.type, own)
    refuseForeign(body, type)
    const wanted = body.authentication_name
    await checkName('authentication_name', wanted, own, store.externalAuths, 'authenticationName')
    check(
      'authentication_name',
      (USER_AUTHS as readonly string[]).includes(nameKey(wanted ?? ''))
        ? 'the name of a method of the broker itself'
        : undefined,
    )
    if (type === 'OIDC') {
      if (body.private_key != null) check('private_key', signingKeyFlaw(Secret.of(body.private_key)))
      const options = oidcOptionsOf(body.oidc ?? {}, own?.type === 'OIDC' ? own.options : undefined)
      for (const [at, one] of options.scopes.entries()) {
        const profile = one.slice(one.lastIndexOf('=') + 1)
        if (!(await store.profiles.rightsOf(profile)))
          throw fieldError('unknown_reference', `oidc/scopes/${at}`, `there is no profile "${profile}"`)
      }
      return {
        ...commonOf(body, type, own),
        servers: [placeOf(body, issuerServer(options.issuer), 'oidc/issuer says where it is')],
        options,
      }
    }
    if (type === 'SAML') {
      const old = own?.type === 'SAML' ? own.options : undefined
      const { certificate, key } = await ownPairOf(body, old, wanted ?? '', clock())
      const options = await samlOptionsOf(body.saml ?? {}, old, certificate, clock())
      const servers = [placeOf(body, await idpServer(options, clock()), 'the metadata say where it is')]
      return { ...commonOf(body, type, own), servers, options, ...(key && { madeKey: key }) }
    }
    const servers = serversOf(body, own)
    if (body.keytab != null) check('keytab', keytabFlaw(body.keytab))
    const options =
      type === 'KERBEROS'
        ? kerberosOptionsOf(body.kerberos ?? {}, own?.type === 'KERBEROS' ? own.options : undefined)
        : type === 'TACACS'
          ? tacacsOptionsOf(body.tacacs ?? {}, own?.type === 'TACACS' ? own.options : undefined, servers)
          : type === 'RADIUS'
            ? radiusOptionsOf(body.radius ?? {}, own?.type === 'RADIUS' ? own.options : undefined)
            : ldapOptionsOf(body.ldap ?? {}, own?.type === 'LDAP' ? own.options : undefined)
    return { ...commonOf(body, type, own), servers, options }
  }
  /** A new place for old secrets would get them: they have to be given again. */
  const refuseMovedSecrets = (body: Static<typeof Update>, old: ExternalAuth, change: Change): void => {
    const isKnown = ({ host, port }: ExternalServer) =>
      old.servers.some((server) => server.host === host && server.port === port)
    const isMoved = !change.servers.every(isKnown)
    const accounting = body.radius?.accounting_port ?? undefined
    const isAccountedElsewhere =
      accounting !== undefined && !(old.type === 'RADIUS' && old.options.accountingPort === accounting)
    const isOtherIssuer = old.type === 'OIDC' && (change.options as OidcOptions).issuer !== old.options.issuer
    if (
      !isMoved &&
      body.ldap?.ca_certificates === undefined &&
      body.ldap?.server_name === undefined &&
      body.ldap?.security === undefined &&
      !isAccountedElsewhere &&
      !isOtherIssuer &&
      body.oidc?.ca_certificates === undefined &&
      body.tacacs?.allow_public_networks !== true
    )
      return
    for (const one of SECRETS) {
      if (old.secretNames.includes(one) && body[one] === undefined)
        throw fieldError(
          'invalid_field',
          one,
          'the secret goes to another server, or by another way: give it again, or null',
        )
    }
  }
  const secretsOf = (body: Static<typeof Update>): Map<string, Secret | undefined> =>
    new Map(
      SECRETS.flatMap((one): [string, Secret | undefined][] => {
        const value = body[one]
        return value === undefined ? [] : [[one, value === null ? undefined : Secret.of(value)]]
      }),
    )
  const withSecrets = (
    called: string,
    secrets: Map<string, Secret | undefined>,
    write: () => Promise<ExternalAuth>,
  ) => {
    if (secrets.size === 0) return write
    const event = { code: 'secret.change' as const, fields: { object_type: 'externalauth', object: called } }
    return announced([event], async () => {
      const auth = await write()
      await store.externalAuths.setSealedSecrets(auth.id, sealed(auth.id, secrets))
      return (await store.externalAuths.find(auth.id)) ?? auth
    })
  }
  const sealed = (id: Id, secrets: Map<string, Secret | undefined>) =>
    new Map([...secrets].map(([one, value]) => [one, value && sealExternal(vault, id, one, value)]))

  return resource({
    path: '/externalauths',
    type: 'externalauth',
    title: 'External authentications',
    description:
      'Servers that judge sign-ins. A caller cannot change one that lets in persons or users with rights beyond its own; if it lets in persons, that needs `user_groups: modify`, for local users `users: modify`.',
    create: {
      schema: Create,
      async plan(body) {
        const { madeKey, ...change } = await changeOf(body, body.type)
        const secrets = secretsOf(body)
        if (madeKey) secrets.set('private_key', madeKey)
        return withSecrets(body.authentication_name, secrets, () =>
          store.externalAuths.create({
            ...change,
            authenticationName: body.authentication_name,
            type: body.type,
            secretNames: [],
            secretRevision: 0,
          } as Omit<ExternalAuth, 'id'>),
        )
      },
    },
    update: {
      schema: Update,
      async plan(old, body, request) {
        await refuseBeyondMappings(store, request, ({ externalAuthIds, secondaryAuthIds }) =>
          [...externalAuthIds, ...secondaryAuthIds].includes(old.id),
        )
        await refuseBeyondUsers(store, request, old)
        const { madeKey: _none, ...change } = await changeOf(body, old.type, old)
        if (old.type !== 'SAML') refuseMovedSecrets(body, old, change)
        return withSecrets(old.authenticationName, secretsOf(body), () =>
          store.externalAuths.update(old.id, change as Partial<ExternalAuth>, old),
        )
      },
    },
    removeFrom: (old) => store.externalAuths.remove(old.id, old),
    view: View,
    show: async (auth) => {
      const [first, ...others] = auth.servers.map(({ host, port }) => ({ host, port: port ?? null }))
      return {
        authentication_name: auth.authenticationName,
        type: auth.type as Static<typeof View>['type'],
        host: first?.host ?? '',
        port: first?.port ?? null,
        backup_servers: others,
        description: auth.description,
        timeout: Math.round(auth.timeoutMs / 1000),
        offline: auth.offlineS ?? 0,
        ldap: auth.type === 'LDAP' ? ldapShown(auth.options) : {},
        radius: auth.type === 'RADIUS' ? radiusShown(auth.options) : {},
        tacacs: auth.type === 'TACACS' ? tacacsShown(auth.options) : {},
        kerberos: auth.type === 'KERBEROS' ? kerberosShown(auth.options) : {},
        oidc: auth.type === 'OIDC' ? oidcShown(auth.options) : {},
        saml: auth.type === 'SAML' ? samlShown(auth.options) : {},
        secrets: auth.secretNames,
      }
    },
    label: (auth) => String(auth['authentication_name']),
    secrets: [...SECRETS],
    list: (_request, page) => store.externalAuths.list(page),
    find: (_request, ref) => store.externalAuths.find(ref),
  })
}

/** @throws ApiError `invalid_field` if the type is another one than that of the object */
export function refuseOtherType(type: string | undefined, own: { type: string } | undefined): void {
  if (type !== undefined && own && own.type !== type)
    throw fieldError(
      'invalid_field',
      'type',
      `it is of type ${own.type}, which does not change: make another one`,
    )
}

/**
 * Who decides about such a domain decides about the profiles and the groups of its persons.
 * @throws ApiError `profile_exceeds_own` if a mapping gives a profile with rights beyond the caller's; `forbidden` if
 * there is one, and the caller may not change user groups
 */
export async function refuseBeyondMappings(
  store: Store,
  request: ApiRequest,
  isConcerned: (domain: AuthDomain) => boolean,
): Promise<void> {
  for (const domain of (await store.authDomains.list()).items.filter(isConcerned)) {
    const { items } = await store.authDomainMappings.list(undefined, domain.id)
    for (const profile of new Set(items.map(({ profile }) => profile)))
      refuseBeyondOwn(request, await rightsOf(store, profile))
    if (items.length > 0) requireRight(request, 'user_groups', 'modify')
  }
}

/** A server that judges local users amounts to their password. @throws ApiError `profile_exceeds_own`, `forbidden` */
async function refuseBeyondUsers(store: Store, request: ApiRequest, { id }: ExternalAuth): Promise<void> {
  const profiles = await store.externalAuths.profilesOfUsers(id)
  for (const profile of profiles) refuseBeyondOwn(request, await rightsOf(store, profile))
  if (profiles.length > 0) requireRight(request, 'users', 'modify')
}

export function registerExternalAuths(app: Api, context: Context): void {
  registerCollection(app, context, externalAuthResource(context))
}
