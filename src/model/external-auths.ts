/**
 * Servers that judge sign-ins, and authentication domains, which say who is asked and what is made of the answer.
 * Names are those of the API's fields, in the store's spelling.
 */
import type { Id } from './objects.ts'

export const EXTERNAL_AUTH_TYPES = ['LDAP', 'RADIUS', 'TACACS', 'KERBEROS', 'OIDC', 'SAML'] as const
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
  /** Value that `aud` of each access token must hold. Empty: access tokens are not taken. */
  audience: string
  /**
   * `at+jwt`: access tokens of RFC 9068. `jwt`: others, such as those of jobs, which must be bound by claims. `opaque`: the
   * issuer is asked about each (RFC 7662).
   */
  tokenType: 'at+jwt' | 'jwt' | 'opaque'
  /** Claim with the name. */
  userClaim: string
  /** Each `CLAIM=VALUE`: all these claims, each with one of its values. */
  boundClaims: string[]
  /** Each `SCOPE=PROFILE`. Empty: scopes say nothing. */
  scopes: string[]
  /** PEM; absent: the system's authorities. */
  caCertificates?: string
  /** Absent: no person signs in there by browser. */
  client?: OidcClient
}

export const OIDC_CLIENT_AUTHENTICATIONS = [
  'client_secret_basic',
  'client_secret_post',
  'private_key_jwt',
  'none',
] as const
export const OIDC_PROMPTS = ['login', 'select_account', 'consent'] as const

/** The bastion as a client of the issuer, for sign-ins by browser. */
export interface OidcClient {
  /** `client_id`. */
  id: string
  authentication: (typeof OIDC_CLIENT_AUTHENTICATIONS)[number]
  /** `kid` by which the issuer finds the key of `private_key_jwt`. */
  keyId?: string
  /** PEM of the certificate by which the issuer knows that key. */
  certificate?: string
  /** Scopes that are asked for, `openid` among them. */
  scopes: string[]
  /** One of them has to be the `acr` of the ID Token. Empty: any. */
  acrValues: string[]
  /** All of them have to be in `amr` of the ID Token. */
  amrValues: string[]
  /** Seconds since the person was authenticated at the issuer, at most. */
  maxAge?: number
  prompt?: (typeof OIDC_PROMPTS)[number]
  /** Whether a logout at the issuer ends sessions, too, and not only sign-ins at the API and its pages. */
  logoutEndsSessions: boolean
  /** Minutes for which a sign-in counts, with all that rests on it, if the issuer gives no refresh token. */
  lifetime: number
}

export const SAML_BINDINGS = ['redirect', 'post'] as const
export const SAML_NAME_ID_FORMATS = ['unspecified', 'email', 'persistent', 'transient'] as const

/** Where the identity provider is, and by which certificates it is known: by its metadata, or said one by one. */
export type SamlIdp =
  | { metadata: string }
  | { metadataUrl: string }
  | { entityId: string; ssoUrl: string; sloUrl?: string; certificates: string }

export interface SamlOptions {
  idp: SamlIdp
  /** PEM; one of these has to sign the metadata. Absent: they need no signature. */
  metadataCertificates?: string
  /** PEM of the authorities for `metadataUrl`; absent: the system's. */
  caCertificates?: string
  /** Binding of requests, where the identity provider has both. */
  binding: (typeof SAML_BINDINGS)[number]
  nameIdFormat: (typeof SAML_NAME_ID_FORMATS)[number]
  /** Attribute with the name; absent: the NameID. */
  userAttribute?: string
  /** Attribute that is never given to another person; absent: a persistent NameID. */
  idAttribute?: string
  /** AuthnContextClassRef, one of which is needed. Empty: any. */
  authnContexts: string[]
  forceAuthn: boolean
  /** Whether sign-ins may begin at the identity provider. */
  idpInitiated: boolean
  requireEncryption: boolean
  /** Seconds by which clocks may differ. */
  clockSkew: number
  /** Whether a sign-out at the identity provider ends sessions, too, and not only sign-ins at the API and its pages. */
  logoutEndsSessions: boolean
  /** Minutes for which a sign-in counts, with all that rests on it, at most. */
  lifetime: number
  /** PEM of our certificates, whose keys are secrets. */
  certificate: string
  nextCertificate?: string
}

export type ExternalAuth =
  | (Common & { type: 'LDAP'; options: LdapOptions })
  | (Common & { type: 'RADIUS'; options: RadiusOptions })
  | (Common & { type: 'TACACS'; options: TacacsOptions })
  | (Common & { type: 'KERBEROS'; options: KerberosOptions })
  | (Common & { type: 'OIDC'; options: OidcOptions })
  | (Common & { type: 'SAML'; options: SamlOptions })

/** Names of the sealed secrets of each type. `keytab` is base64. */
export const EXTERNAL_AUTH_SECRETS = {
  LDAP: ['bind_password', 'client_key'],
  RADIUS: ['shared_secret'],
  TACACS: ['shared_secret'],
  KERBEROS: ['keytab'],
  OIDC: ['client_secret', 'private_key'],
  SAML: ['private_key', 'next_private_key'],
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
  /** Binds a provisioned user to a sign-in; absent: no provisioning. */
  scimIdentifier?: ScimIdentifier | undefined
}

/** `external_id` is the id that the sign-in shows; `user_name` is the name of the first one, whose id counts from then on. */
export const SCIM_IDENTIFIERS = ['external_id', 'user_name'] as const
export type ScimIdentifier = (typeof SCIM_IDENTIFIERS)[number]

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
