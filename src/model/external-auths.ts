/**
 * Servers that judge sign-ins, and authentication domains, which say who is asked and what is made of the answer.
 * Names are those of the API's fields, in the store's spelling.
 */
import type { Id } from './objects.ts'

export const EXTERNAL_AUTH_TYPES = ['LDAP', 'RADIUS', 'TACACS', 'KERBEROS', 'OIDC'] as const
export type ExternalAuthType = (typeof EXTERNAL_AUTH_TYPES)[number]

export interface ExternalServer {
  host: string
  /** Absent: the usual port of the type. */
  port?: number
}

interface Common {
  id: Id
  /** Unique; also a value of `user_auths` and `secondary_auth` of users. */
  authenticationName: string
  description: string
  /** Tried in order. At least one, eight at most. */
  servers: ExternalServer[]
  /** Milliseconds that one server has for its answer, 100 to 60,000. */
  timeoutMs: number
  /** Seconds for which a password that was accepted signs in while the servers are away; absent: none does. */
  offlineS?: number
  /** Names of the secrets that are set. Kept by the store. */
  secretNames: string[]
  /** How often a secret was set. Counted by the store. */
  secretRevision: number
}

export interface LdapOptions {
  security: 'ldaps' | 'starttls' | 'none'
  /** PEM; absent: the system's authorities. */
  caCertificates?: string
  /** Name that the certificate must show, if not the host's. */
  serverName?: string
  /** PEM of the client's certificate; its key is a secret. */
  clientCertificate?: string
  bindDn: string
  baseDn: string
  directory: 'active_directory' | 'generic'
  /** Attribute that holds the name of the sign-in: `uid`, `sAMAccountName`, `userPrincipalName`. */
  loginAttribute: string
  /** RFC 4515, parsed when it is set; narrows the persons down. */
  userFilter?: string
  /** Absent: groups are read from `memberOf` of the person. */
  groupBaseDn?: string
  nestedGroups: boolean
}

export interface RadiusOptions {
  nasIdentifier?: string
  /** False for an old server only: replies without Message-Authenticator can be forged (CVE-2024-3596). */
  requireMessageAuthenticator: boolean
  /** Number of times that a request is sent to each server. */
  tries: number
  /** Port of accounting; absent: no accounting. */
  accountingPort?: number
  /** Minutes between reports of a running session. */
  accountingInterval?: number
}

/** Minutes between reports of a running session, unless the object says otherwise. */
export const ACCOUNTING_INTERVAL = 10

export interface TacacsOptions {
  authentication: 'ascii' | 'pap'
  singleConnect: boolean
  authorization: boolean
  accounting: boolean
  commandAccounting: boolean
  /** The body is only obfuscated: other than private networks are refused unless set. */
  allowPublicNetworks: boolean
}

export interface KerberosOptions {
  realm: string
  /** Principal of the keytab by which the KDC is proved. */
  servicePrincipal: string
}

export interface OidcOptions {
  /** https URL, as `iss` of each token has it. */
  issuer: string
  /** Value that `aud` of each token must hold. */
  audience: string
  /** `at+jwt`: access tokens of RFC 9068. `jwt`: others, such as those of jobs, which must be bound by claims. */
  tokenType: 'at+jwt' | 'jwt'
  /** Claim with the name. */
  userClaim: string
  /** Each `CLAIM=VALUE`: all these claims, each with one of its values. */
  boundClaims: string[]
  /** Each `SCOPE=PROFILE`. Empty: scopes say nothing. */
  scopes: string[]
  /** PEM; absent: the system's authorities. */
  caCertificates?: string
}

export type ExternalAuth =
  | (Common & { type: 'LDAP'; options: LdapOptions })
  | (Common & { type: 'RADIUS'; options: RadiusOptions })
  | (Common & { type: 'TACACS'; options: TacacsOptions })
  | (Common & { type: 'KERBEROS'; options: KerberosOptions })
  | (Common & { type: 'OIDC'; options: OidcOptions })

/** Names of the sealed secrets of each type. `keytab` is base64. */
export const EXTERNAL_AUTH_SECRETS = {
  LDAP: ['bind_password', 'client_key'],
  RADIUS: ['shared_secret'],
  TACACS: ['shared_secret'],
  KERBEROS: ['keytab'],
  OIDC: [],
} as const satisfies Record<ExternalAuthType, readonly string[]>

/** Seconds: a day. */
export const MAX_OFFLINE_S = 86_400
/** Types whose passwords stay the same: others take codes of one time. */
export const OFFLINE_TYPES: readonly ExternalAuthType[] = ['LDAP', 'KERBEROS']

export const AUTH_DOMAIN_LANGUAGES = ['en', 'fr', 'de', 'es'] as const

export interface AuthDomain {
  id: Id
  domainName: string
  description: string
  type: ExternalAuthType
  /** At most one. */
  isDefault: boolean
  /** Tried in order: the next one only if one is unavailable. */
  externalAuthIds: Id[]
  /** All of them, one after the other, once the first factor was accepted. */
  secondaryAuthIds: Id[]
  attributes: AuthDomainAttributes
  /** Language where the directory names none. */
  defaultLanguage: (typeof AUTH_DOMAIN_LANGUAGES)[number]
}

/** Names of the directory's attributes. */
export interface AuthDomainAttributes {
  displayName?: string
  email?: string
  language?: string
  group?: string
  publicKey?: string
}

/** Puts members of `externalGroup` into the user group, with the profile. `*`: persons without another mapping. */
export interface AuthDomainMapping {
  id: Id
  authDomainId: Id
  userGroupId: Id
  externalGroup: string
  profile: string
}
