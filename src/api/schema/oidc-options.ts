/** Options of issuers of access tokens: fields of the API, and what is stored of them. */
import { type Static, Type } from 'typebox'
import type { ExternalServer, OidcOptions } from '../../model/external-auths.ts'
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
    audience: line('what aud of each token must hold: the name of this bastion at the issuer', 255),
    token_type: oneOf(
      ['at+jwt', 'jwt'],
      'at+jwt (RFC 9068) unless given; jwt for others, such as those of CI jobs, which need bound_claims',
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
  }
  check('oidc/issuer', issuerFlaw(options.issuer))
  check('oidc/audience', options.audience === '' ? 'say the name of this bastion at the issuer' : undefined)
  check(
    'oidc/bound_claims',
    options.tokenType === 'jwt' && options.boundClaims.length === 0
      ? 'tokens of type jwt need at least one, such as repository=acme/app: others have tokens of that issuer too'
      : undefined,
  )
  check('oidc/ca_certificates', certificatesFlaw(caCertificates))
  return options
}

export function oidcShown(options: OidcOptions) {
  return {
    issuer: options.issuer,
    audience: options.audience,
    token_type: options.tokenType,
    user_claim: options.userClaim,
    bound_claims: options.boundClaims,
    scopes: options.scopes,
    ca_certificates: options.caCertificates ?? null,
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
