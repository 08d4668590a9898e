/**
 * Sign-ins by browser at an issuer: authorization code with PKCE (OpenID Connect Core 1.0 section 3.1, RFC 7636), refresh and
 * logout. openid-client speaks the protocol; each token is judged here too, by the names of its checks.
 */
import * as openid from 'openid-client'
import type { AuthDomainAttributes, OidcClient, OidcOptions } from '../../../model/external-auths.ts'
import type { ProviderTokens } from '../../provider-sessions.ts'
import type { Person } from '../method.ts'
import { type ClientSecrets, clientOf } from './client.ts'
import { ExchangeError, type JsonSource } from './https-json.ts'
import { type Expected, judgeIdToken } from './id-token.ts'
import { type Issuer, IssuerError } from './issuer.ts'
import { type LoggedOut, LogoutTokens } from './logout-token.ts'
import { personOf } from './person.ts'
import { type Claims, claimAt, isText, TokenError } from './signed.ts'
import { checkBound } from './token.ts'

/** Random values of one attempt, each of them sent once. */
export interface AttemptValues {
  redirectUri: string
  state: string
  nonce: string
  /** Of PKCE. */
  verifier: string
}

export type Redeemed =
  | { result: 'proved'; person: Person; subject: string; sid?: string; tokens: ProviderTokens }
  /** An error response of the provider, by its code of RFC 6749 or OpenID Connect. */
  | { result: 'denied'; error: string; description: string }
  /** The response, or a token, does not stand the checks. `reason` is for administrators. */
  | { result: 'refused'; reason: string }
  | { result: 'unavailable'; reason: string }

export type Renewed =
  /** `person` is absent if the provider says no claims anew. */
  | { result: 'renewed'; person?: Person; tokens: ProviderTokens }
  | { result: 'ended'; reason: string }
  /** `tokens`: new ones that came before the failure. */
  | { result: 'unavailable'; reason: string; tokens?: ProviderTokens }

export interface RelyingPartyOptions {
  options: OidcOptions
  client: OidcClient
  secrets: ClientSecrets
  attributes: AuthDomainAttributes
  issuer: Issuer
  source: JsonSource
  /** Aborts all exchanges. */
  signal: AbortSignal
  /** Milliseconds since the epoch. */
  now: () => number
}

/** Errors that are the provider's trouble (RFC 6749 sections 4.1.2.1 and 5.2). */
const TROUBLE = ['server_error', 'temporarily_unavailable']
/** Codes of openid-client for answers that do not come, or are none of the protocol. */
const NO_ANSWER = [
  'OAUTH_TIMEOUT',
  'OAUTH_ABORT',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON',
  'OAUTH_PARSE_ERROR',
  'OAUTH_HTTP_REQUEST_FORBIDDEN',
]

export class RelyingParty {
  readonly #options: RelyingPartyOptions
  readonly #logoutTokens: LogoutTokens

  constructor(options: RelyingPartyOptions) {
    this.#options = options
    this.#logoutTokens = new LogoutTokens({ issuer: options.options.issuer, clientId: options.client.id })
  }

  /** Returns where the browser goes to. @throws Error if the issuer cannot be asked */
  async authorizationUrl({ redirectUri, state, nonce, verifier }: AttemptValues): Promise<URL> {
    const { scopes, acrValues, maxAge, prompt } = this.#options.client
    const url = openid.buildAuthorizationUrl(await this.#client(), {
      redirect_uri: redirectUri,
      scope: scopes.join(' '),
      state,
      nonce,
      code_challenge: await openid.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      ...(acrValues.length > 0 && { acr_values: acrValues.join(' ') }),
      ...(maxAge !== undefined && { max_age: String(maxAge) }),
      ...(prompt && { prompt }),
    })
    if (url.protocol !== 'https:') throw new IssuerError('expected authorization_endpoint to be an https URL')
    return url
  }

  /** Redeems the code of an authorization response, whose parameters the browser has brought. */
  async redeem(parameters: URLSearchParams, attempt: AttemptValues): Promise<Redeemed> {
    const { nonce, redirectUri, state: expectedState, verifier: pkceCodeVerifier } = attempt
    try {
      const client = await this.#client()
      const answer = await openid.authorizationCodeGrant(client, new URL(`${redirectUri}?${parameters}`), {
        expectedNonce: nonce,
        expectedState,
        pkceCodeVerifier,
        idTokenExpected: true,
      })
      const { access_token: accessToken, id_token: idToken = '', refresh_token: refreshToken } = answer
      const claims = await this.#judged(idToken, { nonce, accessToken })
      const subject = String(claims['sub'])
      checkBound(claims, this.#options.options.boundClaims)
      const person = await this.#personOf(client, claims, accessToken)
      const { sid } = claims
      const tokens = { idToken, ...(refreshToken !== undefined && { refreshToken }) }
      return { result: 'proved', person, subject, ...(isText(sid) && { sid }), tokens }
    } catch (error) {
      if (error instanceof openid.AuthorizationResponseError && !TROUBLE.includes(error.error))
        return { result: 'denied', error: error.error, description: error.error_description ?? '' }
      return { result: isTrouble(error) ? 'unavailable' : 'refused', reason: reasonOf(error) }
    }
  }

  /** Asks whether the person may stay signed in, by a refresh token. */
  async renew(old: ProviderTokens & { refreshToken: string }, subject: string): Promise<Renewed> {
    let tokens: ProviderTokens | undefined
    try {
      const client = await this.#client()
      const answer = await openid.refreshTokenGrant(client, old.refreshToken)
      const { access_token: accessToken, id_token: idToken, refresh_token: refreshToken } = answer
      tokens = { ...old, ...(refreshToken !== undefined && { refreshToken }) }
      const claims = idToken === undefined ? { sub: subject } : await this.#judged(idToken, { accessToken })
      if (claims['sub'] !== subject) return { result: 'ended', reason: 'the refresh is of another person' }
      if (idToken !== undefined) tokens = { ...tokens, idToken }
      if (idToken === undefined && client.serverMetadata().userinfo_endpoint === undefined)
        return { result: 'renewed', tokens }
      return { result: 'renewed', person: await this.#personOf(client, claims, accessToken), tokens }
    } catch (error) {
      const isGone =
        error instanceof openid.WWWAuthenticateChallengeError ||
        error instanceof TokenError ||
        (error instanceof openid.ResponseBodyError && error.error === 'invalid_grant')
      if (isGone) return { result: 'ended', reason: reasonOf(error) }
      return { result: 'unavailable', reason: reasonOf(error), ...(tokens && { tokens }) }
    }
  }

  /** Returns where the browser signs out (RP-Initiated Logout 1.0), or undefined if the issuer has no such place. */
  async endSessionUrl(idToken: string | undefined, returnTo: string): Promise<URL | undefined> {
    try {
      const client = await this.#client()
      const place = URL.parse(client.serverMetadata().end_session_endpoint ?? '')
      if (place?.protocol !== 'https:') return undefined
      return openid.buildEndSessionUrl(client, {
        post_logout_redirect_uri: returnTo,
        ...(idToken !== undefined && { id_token_hint: idToken }),
      })
    } catch (error) {
      if (isTrouble(error)) return undefined
      throw error
    }
  }

  /** Returns what the issuer says of a token (RFC 7662). @throws Error if it says nothing */
  async introspected(token: string): Promise<Claims> {
    try {
      return await openid.tokenIntrospection(await this.#client(), token)
    } catch (error) {
      throw new IssuerError(reasonOf(error))
    }
  }

  /** Returns the sessions that a Logout Token ends. @throws TokenError, IssuerError */
  async loggedOut(token: string): Promise<LoggedOut> {
    const { issuer, now } = this.#options
    return await this.#logoutTokens.judge(token, issuer.key, now())
  }

  /** @throws IssuerError, Error for a secret that is missing */
  async #client(): Promise<openid.Configuration> {
    const { client, issuer, secrets, signal, source } = this.#options
    return clientOf(await issuer.discovered(), client, secrets, source, signal)
  }

  async #judged(idToken: string, expected: Expected): Promise<Claims> {
    const { client, issuer, now, options } = this.#options
    return await judgeIdToken(idToken, { ...client, issuer: options.issuer }, expected, issuer.key, now())
  }

  /** Reads claims that the token has not from the issuer, which has to say the same `sub`. */
  async #personOf(client: openid.Configuration, claims: Claims, accessToken: string): Promise<Person> {
    const { attributes, options } = this.#options
    const wanted = [
      options.userClaim,
      attributes.displayName ?? 'name',
      attributes.email ?? 'email',
      attributes.group ?? 'groups',
    ]
    const isComplete = wanted.every((claim) => claimAt(claims, claim) !== undefined)
    const hasMore = client.serverMetadata().userinfo_endpoint !== undefined
    const more =
      isComplete || !hasMore ? {} : await openid.fetchUserInfo(client, accessToken, String(claims['sub']))
    return personOf({ ...more, ...claims }, options, attributes)
  }
}

/** Whether an error is the provider's, or of our own settings: it counts as no failure. */
function isTrouble(error: unknown): boolean {
  if (error instanceof IssuerError || error instanceof ExchangeError) return true
  if (error instanceof openid.AuthorizationResponseError) return TROUBLE.includes(error.error)
  // All but a code that is no good, such as `invalid_client`, the person cannot help.
  if (error instanceof openid.ResponseBodyError) return error.error !== 'invalid_grant'
  if (error instanceof openid.ClientError)
    return NO_ANSWER.includes(error.code ?? '') || error.cause instanceof ExchangeError
  return false
}

/** Returns the words of an error, and those of its cause. Tokens are in neither. */
function reasonOf(error: unknown): string {
  if (error instanceof openid.ResponseBodyError)
    return `${error.error}: ${error.error_description ?? `status ${error.status}`}`
  const { cause, message } = error as Error
  const inner = cause instanceof Error && cause.message !== message ? `: ${cause.message}` : ''
  return message + inner
}
