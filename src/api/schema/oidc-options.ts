/** Options of issuers of OpenID Connect: fields of the API, and what is stored of them. */
import { type Static, Type } from 'typebox'
import {
  type ExternalServer,
  OIDC_CLIENT_AUTHENTICATIONS,
  OIDC_PROMPTS,
  type OidcClient,
  type OidcOptions,
} from '../../model/external-auths.ts'
import { certificatesFlaw } from './external-auth-options.ts'
import { check, exact, oneOf, partial } from './fields.ts'

const MAX_PEM = 65_536
const MAX_ITEMS = 64
const CLAIM = '[A-Za-z0-9_.:/-]{1,128}'
const line = (description: string, maxLength: number) =>
  Type.String({ maxLength, pattern: '^[^\\p{Cc}]*$', description })
const lines = (description: string, pattern: string) =>
  Type.Array(Type.String({ maxLength: 512, pattern }), { maxItems: MAX_ITEMS, description })

export const Oidc = partial(
  exact({
    issuer: line('https URL of the issuer, exactly as iss of its tokens has it', 512),
    audience: line(
      'what aud of each access token must hold: the name of this bastion at the issuer; empty: no access tokens are taken',
      255,
    ),
    token_type: oneOf(
      ['at+jwt', 'jwt', 'opaque'],
      'of access tokens: at+jwt (RFC 9068) unless given; jwt for others, such as those of CI jobs, which need bound_claims; opaque: the issuer is asked about each (RFC 7662)',
    ),
    user_claim: Type.String({
      pattern: `^(${CLAIM})?$`,
      description: 'claim with the name of the person or job; sub unless given, or empty',
    }),
    bound_claims: lines(
      'CLAIM=VALUE: a token must have each of these claims, with one of the values named for it',
      `^${CLAIM}=[^\\p{Cc}]+$`,
    ),
    scopes: lines(
      'SCOPE=PROFILE: the most that a token with the scope may do; empty: scopes say nothing',
      '^[\\x21\\x23-\\x5b\\x5d-\\x7e]+=[A-Za-z0-9._-]+$',
    ),
    client_id: line(
      'name of this bastion as a client of the issuer; empty: nobody signs in there by browser',
      255,
    ),
    client_authentication: oneOf(
      OIDC_CLIENT_AUTHENTICATIONS,
      'how the client proves itself: by client_secret (client_secret_basic unless given), by private_key, or not',
    ),
    key_id: line('kid of the public key of private_key at the issuer; empty: none is named', 255),
    client_certificate: Type.Union([Type.String({ minLength: 1, maxLength: MAX_PEM }), Type.Null()], {
      description:
        'PEM of the certificate of private_key, for issuers that know the key by it, as Entra ID does: assertions have x5t#S256, PS256 and the token endpoint as aud; null: none',
    }),
    requested_scopes: lines(
      'scopes that are asked for beside openid; profile and email unless given',
      '^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$',
    ),
    acr_values: lines('one of them must be acr of the ID Token; empty: any', '^[^\\s\\p{Cc}]+$'),
    amr_values: lines('all of them must be in amr of the ID Token, such as mfa', '^[^\\s\\p{Cc}]+$'),
    max_age: Type.Union([Type.Integer({ minimum: 0, maximum: 86_400 }), Type.Null()], {
      description: 'seconds since the person was authenticated at the issuer, at most; null: any',
    }),
    prompt: Type.Union([oneOf(OIDC_PROMPTS, 'prompt'), Type.Null()], {
      description: 'what the issuer asks in any case; null: nothing',
    }),
    logout_ends_sessions: Type.Boolean({
      description: 'whether a logout at the issuer ends running sessions, too; true unless given',
    }),
    sign_in_lifetime: Type.Integer({
      minimum: 1,
      maximum: 720,
      description:
        'minutes for which a sign-in by browser counts, with all that rests on it, if the issuer gives no refresh token; 60 unless given',
    }),
    ca_certificates: Type.Union([Type.String({ minLength: 1, maxLength: MAX_PEM }), Type.Null()], {
      description: "PEM of the authorities; null: the system's",
    }),
  }),
)

/** Returns the options as they will be. @throws ApiError `invalid_field` */
export function oidcOptionsOf(body: Static<typeof Oidc>, old: OidcOptions | undefined): OidcOptions {
  const caCertificates =
    body.ca_certificates === undefined ? old?.caCertificates : (body.ca_certificates ?? undefined)
  const options: OidcOptions = {
    issuer: body.issuer ?? old?.issuer ?? '',
    audience: body.audience ?? old?.audience ?? '',
    tokenType: body.token_type ?? old?.tokenType ?? 'at+jwt',
    userClaim: (body.user_claim ?? old?.userClaim) || 'sub',
    boundClaims: body.bound_claims ?? old?.boundClaims ?? [],
    scopes: body.scopes ?? old?.scopes ?? [],
    ...(caCertificates !== undefined && { caCertificates }),
    ...clientOf(body, old?.client),
  }
  const { client } = options
  check('oidc/issuer', issuerFlaw(options.issuer))
  check(
    'oidc/audience',
    options.audience === '' && !client
      ? 'say the name of this bastion at the issuer, or oidc/client_id for sign-ins by browser'
      : undefined,
  )
  check(
    'oidc/client_id',
    options.tokenType === 'opaque' && !client ? 'the issuer answers questions of clients only' : undefined,
  )
  check(
    'oidc/bound_claims',
    options.tokenType === 'jwt' && options.boundClaims.length === 0
      ? 'tokens of type jwt need at least one, such as repository=acme/app: others have tokens of that issuer too'
      : undefined,
  )
  check('oidc/ca_certificates', certificatesFlaw(caCertificates))
  check('oidc/client_certificate', certificatesFlaw(client?.certificate))
  return options
}

function clientOf(body: Static<typeof Oidc>, old: OidcClient | undefined): { client?: OidcClient } {
  const id = body.client_id ?? old?.id ?? ''
  if (id === '') return {}
  const maxAge = body.max_age === undefined ? old?.maxAge : (body.max_age ?? undefined)
  const prompt = body.prompt === undefined ? old?.prompt : (body.prompt ?? undefined)
  const scopes = body.requested_scopes ?? old?.scopes ?? ['profile', 'email']
  const keyId = body.key_id ?? old?.keyId ?? ''
  const certificate =
    body.client_certificate === undefined ? old?.certificate : (body.client_certificate ?? undefined)
  const client: OidcClient = {
    id,
    authentication: body.client_authentication ?? old?.authentication ?? 'client_secret_basic',
    scopes: [...new Set(['openid', ...scopes])],
    acrValues: body.acr_values ?? old?.acrValues ?? [],
    amrValues: body.amr_values ?? old?.amrValues ?? [],
    logoutEndsSessions: body.logout_ends_sessions ?? old?.logoutEndsSessions ?? true,
    lifetime: body.sign_in_lifetime ?? old?.lifetime ?? 60,
    ...(keyId !== '' && { keyId }),
    ...(certificate !== undefined && { certificate }),
    ...(maxAge !== undefined && { maxAge }),
    ...(prompt && { prompt }),
  }
  return { client }
}

export function oidcShown(options: OidcOptions) {
  const { client } = options
  return {
    issuer: options.issuer,
    audience: options.audience,
    token_type: options.tokenType,
    user_claim: options.userClaim,
    bound_claims: options.boundClaims,
    scopes: options.scopes,
    ca_certificates: options.caCertificates ?? null,
    client_id: client?.id ?? '',
    ...(client && {
      client_authentication: client.authentication,
      key_id: client.keyId ?? '',
      client_certificate: client.certificate ?? null,
      requested_scopes: client.scopes,
      acr_values: client.acrValues,
      amr_values: client.amrValues,
      max_age: client.maxAge ?? null,
      prompt: client.prompt ?? null,
      logout_ends_sessions: client.logoutEndsSessions,
      sign_in_lifetime: client.lifetime,
    }),
  }
}

/** Returns where an issuer is. */
export function issuerServer(issuer: string): ExternalServer {
  const { hostname, port } = new URL(issuer)
  return { host: hostname.replace(/^\[|\]$/g, ''), ...(port !== '' && { port: Number(port) }) }
}

function issuerFlaw(issuer: string): string | undefined {
  const url = URL.parse(issuer)
  const isPlain =
    url?.protocol === 'https:' &&
    url.username === '' &&
    url.password === '' &&
    !/[?#\s]/.test(issuer) &&
    issuer.startsWith('https://')
  return isPlain ? undefined : 'expected an https URL without a query, such as https://login.example.org'
}
