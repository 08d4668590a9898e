/** Options of servers that judge sign-ins, by their types: fields of the API, and what is stored of them. */
import { Buffer } from 'node:buffer'
import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { type Static, Type } from 'typebox'
import { userFilterFlaw } from '../../identity/methods/ldap/filter.ts'
import { isSendable } from '../../identity/methods/radius/person.ts'
import { isPrivate } from '../../identity/methods/tacacs/addresses.ts'
import { readKeytab } from '../../kerberos/keytab.ts'
import { serviceOf } from '../../kerberos/password.ts'
import {
  ACCOUNTING_INTERVAL,
  type ExternalServer,
  type KerberosOptions,
  type LdapOptions,
  type RadiusOptions,
  type TacacsOptions,
} from '../../model/external-auths.ts'
import { check, exact, oneOf, partial } from './fields.ts'

const MAX_PEM = 65_536
export const HOST_NAME = /^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/
const line = (description: string, maxLength = 512) =>
  Type.String({ maxLength, pattern: '^[^\\p{Cc}]*$', description })
const orNull = (description: string, maxLength: number) =>
  Type.Union([Type.String({ minLength: 1, maxLength }), Type.Null()], { description })

export const Ldap = partial(
  exact({
    security: oneOf(['ldaps', 'starttls', 'none'], 'ldaps unless given; none sends passwords in clear text'),
    ca_certificates: orNull("PEM of the authorities; null: the system's", MAX_PEM),
    server_name: orNull("name that the certificate must show; null: the host's", 253),
    client_certificate: orNull('PEM, with client_key', MAX_PEM),
    bind_dn: line('account that searches, with bind_password; empty: none'),
    base_dn: line('where persons are searched'),
    directory: oneOf(['active_directory', 'generic'], 'generic unless given'),
    login_attribute: Type.String({
      minLength: 1,
      pattern: '^[A-Za-z][A-Za-z0-9-]{0,63}$',
      description:
        'attribute with the name of the sign-in; uid, or sAMAccountName in Active Directory, unless given',
    }),
    user_filter: orNull('RFC 4515, narrows the persons down; null: none', 2048),
    group_base_dn: orNull(
      "where groups are searched by their members; null: the person's memberOf says them",
      512,
    ),
    nested_groups: Type.Boolean({ description: 'default false; groups of groups count too' }),
  }),
)

/** Returns the options as they will be. @throws ApiError `invalid_field` */
export function ldapOptionsOf(body: Static<typeof Ldap>, old: LdapOptions | undefined): LdapOptions {
  const kept = <T>(given: T | null | undefined, before: T | undefined) =>
    given === undefined ? before : (given ?? undefined)
  const directory = body.directory ?? old?.directory ?? 'generic'
  const texts = {
    caCertificates: kept(body.ca_certificates, old?.caCertificates),
    serverName: kept(body.server_name, old?.serverName),
    clientCertificate: kept(body.client_certificate, old?.clientCertificate),
    userFilter: kept(body.user_filter, old?.userFilter),
    groupBaseDn: kept(body.group_base_dn, old?.groupBaseDn),
  }
  check('ldap/ca_certificates', certificatesFlaw(texts.caCertificates))
  check('ldap/client_certificate', certificatesFlaw(texts.clientCertificate))
  if (texts.serverName !== undefined) check('ldap/server_name', hostFlaw(texts.serverName))
  if (texts.userFilter !== undefined) check('ldap/user_filter', userFilterFlaw(texts.userFilter))
  const baseDn = body.base_dn ?? old?.baseDn ?? ''
  check(
    'ldap/base_dn',
    baseDn === '' ? 'say where persons are searched, such as dc=example,dc=org' : undefined,
  )
  const standard = directory === 'active_directory' ? 'sAMAccountName' : 'uid'
  return {
    security: body.security ?? old?.security ?? 'ldaps',
    bindDn: body.bind_dn ?? old?.bindDn ?? '',
    baseDn,
    directory,
    loginAttribute: body.login_attribute ?? old?.loginAttribute ?? standard,
    nestedGroups: body.nested_groups ?? old?.nestedGroups ?? false,
    ...(Object.fromEntries(
      Object.entries(texts).filter(([, text]) => text !== undefined),
    ) as Partial<LdapOptions>),
  }
}

export function ldapShown(options: LdapOptions) {
  return {
    security: options.security,
    ca_certificates: options.caCertificates ?? null,
    server_name: options.serverName ?? null,
    client_certificate: options.clientCertificate ?? null,
    bind_dn: options.bindDn,
    base_dn: options.baseDn,
    directory: options.directory,
    login_attribute: options.loginAttribute,
    user_filter: options.userFilter ?? null,
    group_base_dn: options.groupBaseDn ?? null,
    nested_groups: options.nestedGroups,
  }
}

export const Radius = partial(
  exact({
    nas_identifier: orNull('name under which the bastion asks; null: sallyport', 253),
    require_message_authenticator: Type.Boolean({
      description:
        'default true; false for an old server only, whose answers can then be forged (CVE-2024-3596)',
    }),
    tries: Type.Integer({
      minimum: 1,
      maximum: 10,
      description: 'times that a request is sent to each server within the timeout; 3 unless given',
    }),
    accounting_port: Type.Union([Type.Null(), Type.Integer({ minimum: 1, maximum: 65535 })], {
      description:
        "port of accounting, 1813 mostly, which reports every session's begin and end; null for none",
    }),
    accounting_interval: Type.Integer({
      minimum: 1,
      maximum: 1440,
      description: 'minutes between reports of a running session; 10 unless given',
    }),
  }),
)

/** Returns the options as they will be. @throws ApiError `invalid_field` */
export function radiusOptionsOf(body: Static<typeof Radius>, old: RadiusOptions | undefined): RadiusOptions {
  const nasIdentifier =
    body.nas_identifier === undefined ? old?.nasIdentifier : (body.nas_identifier ?? undefined)
  const accountingPort =
    body.accounting_port === undefined ? old?.accountingPort : (body.accounting_port ?? undefined)
  const isFlawed = nasIdentifier !== undefined && !isSendable(nasIdentifier)
  check('radius/nas_identifier', isFlawed ? 'expected 1 to 253 octets without control characters' : undefined)
  return {
    ...(nasIdentifier !== undefined && { nasIdentifier }),
    requireMessageAuthenticator:
      body.require_message_authenticator ?? old?.requireMessageAuthenticator ?? true,
    tries: body.tries ?? old?.tries ?? 3,
    ...(accountingPort !== undefined && { accountingPort }),
    accountingInterval: body.accounting_interval ?? old?.accountingInterval ?? ACCOUNTING_INTERVAL,
  }
}

export function radiusShown(options: RadiusOptions) {
  return {
    nas_identifier: options.nasIdentifier ?? null,
    require_message_authenticator: options.requireMessageAuthenticator,
    tries: options.tries,
    accounting_port: options.accountingPort ?? null,
    accounting_interval: options.accountingInterval ?? ACCOUNTING_INTERVAL,
  }
}

export const Tacacs = partial(
  exact({
    authentication: oneOf(['ascii', 'pap'], 'ascii, whose dialogue can ask on, unless given'),
    single_connect: Type.Boolean({
      description: 'default false; one connection for all, if the server agrees',
    }),
    authorization: Type.Boolean({
      description: 'default true; asks for service=shell, which says the groups of a person',
    }),
    accounting: Type.Boolean({ description: "default false; reports every session's begin and end" }),
    command_accounting: Type.Boolean({
      description: 'default false; reports command lines as typed, secrets on them included',
    }),
    allow_public_networks: Type.Boolean({
      description: 'default false; allows servers outside of private networks, though nothing is encrypted',
    }),
  }),
)

/** Returns the options as they will be. @throws ApiError `invalid_field` for a public address */
export function tacacsOptionsOf(
  body: Static<typeof Tacacs>,
  old: TacacsOptions | undefined,
  servers: readonly ExternalServer[],
): TacacsOptions {
  const allowPublicNetworks = body.allow_public_networks ?? old?.allowPublicNetworks ?? false
  for (const [at, { host }] of servers.entries()) {
    const isRefused = !allowPublicNetworks && isIP(host) !== 0 && !isPrivate(host)
    const flaw = 'a public address, and TACACS+ is not encrypted: set tacacs/allow_public_networks'
    check(at === 0 ? 'host' : `backup_servers/${at - 1}/host`, isRefused ? flaw : undefined)
  }
  return {
    authentication: body.authentication ?? old?.authentication ?? 'ascii',
    singleConnect: body.single_connect ?? old?.singleConnect ?? false,
    authorization: body.authorization ?? old?.authorization ?? true,
    accounting: body.accounting ?? old?.accounting ?? false,
    commandAccounting: body.command_accounting ?? old?.commandAccounting ?? false,
    allowPublicNetworks,
  }
}

export function tacacsShown(options: TacacsOptions) {
  return {
    authentication: options.authentication,
    single_connect: options.singleConnect,
    authorization: options.authorization,
    accounting: options.accounting,
    command_accounting: options.commandAccounting,
    allow_public_networks: options.allowPublicNetworks,
  }
}

const PRINCIPAL = /^[A-Za-z0-9._$-]+(\/[A-Za-z0-9._-]+)*(@[A-Za-z0-9._-]+)?$/

export const Kerberos = partial(
  exact({
    realm: line('realm of the persons, mostly in capitals: EXAMPLE.ORG', 255),
    service_principal: line(
      'service whose key is in keytab, such as host/bastion.example.org: it proves that the KDC is the real one',
    ),
  }),
)

/** Returns the options as they will be. @throws ApiError `invalid_field` */
export function kerberosOptionsOf(
  body: Static<typeof Kerberos>,
  old: KerberosOptions | undefined,
): KerberosOptions {
  const realm = body.realm ?? old?.realm ?? ''
  const servicePrincipal = body.service_principal ?? old?.servicePrincipal ?? ''
  check('kerberos/realm', realmFlaw(realm))
  const isService =
    PRINCIPAL.test(servicePrincipal) && !serviceOf(servicePrincipal, realm).join('').includes('@')
  const flaw = `say a service of the realm, such as host/bastion.example.org`
  check('kerberos/service_principal', isService ? undefined : flaw)
  return { realm, servicePrincipal }
}

export function kerberosShown({ realm, servicePrincipal }: KerberosOptions) {
  return { realm, service_principal: servicePrincipal }
}

/** Returns what is wrong with the name of a realm, or undefined. */
export function realmFlaw(realm: string): string | undefined {
  return /^[A-Za-z0-9._-]+$/.test(realm) ? undefined : 'say the realm, such as EXAMPLE.ORG'
}

/** Returns what is wrong with a keytab in base64, or undefined. */
export function keytabFlaw(keytab: string): string | undefined {
  const bytes = Buffer.from(keytab, 'base64')
  try {
    const keys = readKeytab(bytes)
    for (const { key } of keys) key.bytes.fill(0)
    return keys.length === 0 ? 'no AES key is in the keytab' : undefined
  } catch (error) {
    return `expected a keytab in base64: ${(error as Error).message}`
  } finally {
    bytes.fill(0)
  }
}

/** Returns what is wrong with the name or address of a server, or undefined. */
export function hostFlaw(host: ExternalServer['host']): string | undefined {
  return isIP(host) !== 0 || HOST_NAME.test(host) ? undefined : 'expected a host name or an IP address'
}

/** Returns what is wrong with certificates as PEM, or undefined. */
export function certificatesFlaw(pem: string | undefined): string | undefined {
  if (pem === undefined) return undefined
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  if (blocks.length === 0) return 'expected certificates as PEM (-----BEGIN CERTIFICATE-----)'
  try {
    for (const block of blocks) void new X509Certificate(block)
    return undefined
  } catch {
    return 'one of the certificates cannot be read'
  }
}
