/** Sign-ins at an issuer: by access tokens, and by browser. It proves no passwords. */
import type { AuthDomainAttributes, ExternalAuth } from '../../../model/external-auths.ts'
import type { BearerAnswer, MethodAnswer, SignInMethod, TestStep } from '../method.ts'
import { Turns } from '../turns.ts'
import { addressesOf } from './addresses.ts'
import type { ClientSecrets } from './client.ts'
import { getJson } from './https-json.ts'
import { Issuer, IssuerError, KEYS_FRESH_MS } from './issuer.ts'
import { isMultiFactor, personOf, scopesOf } from './person.ts'
import { RelyingParty } from './relying-party.ts'
import { type Claims, MAX_TOKEN, TokenError } from './signed.ts'
import { checkAccess, checkIntrospected, judgeSignature } from './token.ts'
import { TokenCache } from './token-cache.ts'

/** Milliseconds for which the answer about an opaque token counts: a revoked one for no longer. */
export const INTROSPECTED_MS = 30_000

const NO_PASSWORDS = 'persons of this domain sign in at its issuer, not by passwords'

export interface OidcSettings {
  auth: Extract<ExternalAuth, { type: 'OIDC' }>
  attributes: AuthDomainAttributes
  secrets: ClientSecrets
  /** Origin of this broker's pages. */
  site: string
  /** Milliseconds since the epoch. */
  now: () => number
  /** Told each failure of the issuer. */
  onFailure: (server: string, error: Error) => void
}

export class OidcMethod implements SignInMethod {
  readonly #settings: OidcSettings
  readonly #issuer: Issuer
  readonly #closed = new AbortController()
  /** Claims of tokens whose signature was right. A key that was withdrawn counts no longer here than where keys are kept. */
  readonly #verified = new TokenCache<Claims>(KEYS_FRESH_MS, () => performance.now())
  readonly #introspected = new TokenCache<Claims>(INTROSPECTED_MS, () => performance.now())
  /** Questions about opaque tokens: made-up ones of one network do not keep the issuer busy. */
  readonly #turns = new Turns()
  /** Absent unless the bastion is a client of the issuer. */
  readonly relyingParty?: RelyingParty

  constructor(settings: OidcSettings) {
    const { attributes, now, secrets } = settings
    const { options, timeoutMs } = settings.auth
    const { client, issuer, caCertificates } = options
    const source = { caCertificates, timeoutMs }
    const { signal } = this.#closed
    this.#settings = settings
    this.#issuer = new Issuer({
      issuer,
      get: (url) => getJson(url, source, signal),
      now: () => performance.now(),
      onFailure: (error) => settings.onFailure(issuer, error),
    })
    if (client) {
      const common = { attributes, client, issuer: this.#issuer, now, options, secrets, signal, source }
      this.relyingParty = new RelyingParty(common)
    }
  }

  async bear(token: string, source: string): Promise<BearerAnswer> {
    const { auth, attributes, now } = this.#settings
    try {
      const claims = await this.#claimsOf(token, source)
      const check = auth.options.tokenType === 'opaque' ? checkIntrospected : checkAccess
      check(claims, auth.options, now())
      return {
        result: 'accepted',
        ends: Number(claims['exp']) * 1000,
        person: personOf(claims, auth.options, attributes),
        scopes: scopesOf(claims),
        isMultiFactor: isMultiFactor(claims),
      }
    } catch (error) {
      const result = error instanceof IssuerError ? 'unavailable' : 'rejected'
      return { result, reason: (error as Error).message }
    }
  }

  /** Returns what is known of a token for a while; its times are judged with each use. */
  async #claimsOf(token: string, source: string): Promise<Claims> {
    const { auth } = this.#settings
    if (MAX_TOKEN < token.length) throw new TokenError('form', `longer than ${MAX_TOKEN} characters`)
    if (auth.options.tokenType !== 'opaque')
      return await this.#verified.of(token, () => judgeSignature(token, auth.options, this.#issuer.key))
    return await this.#introspected.of(token, async () => {
      const party = this.relyingParty
      if (!party) throw new IssuerError('the bastion is no client of the issuer')
      const claims = await this.#turns.run(source, () => party.introspected(token))
      if (!claims) throw new IssuerError('too many tokens wait for the issuer')
      return claims
    })
  }

  async prove(): Promise<MethodAnswer> {
    return { result: 'unavailable', reason: NO_PASSWORDS }
  }

  async answer(): Promise<MethodAnswer> {
    return { result: 'unavailable', reason: NO_PASSWORDS }
  }

  async test(): Promise<TestStep[]> {
    try {
      await this.#issuer.key({ alg: 'RS256', kid: '' }, { payload: '', signature: '' })
    } catch (error) {
      if (error instanceof IssuerError) return [{ step: 'reached', ok: false, detail: error.message }]
    }
    const { auth, site } = this.#settings
    const reached = {
      step: 'reached',
      ok: true,
      detail: `the keys of ${auth.options.issuer} were read`,
    } as const
    return this.relyingParty ? [reached, await this.#testClient(site, this.relyingParty)] : [reached]
  }

  async #testClient(site: string, party: RelyingParty): Promise<TestStep> {
    const places = addressesOf(site, this.#settings.auth.authenticationName)
    const { redirectUri } = places
    const values = { redirectUri, state: 'test', nonce: 'test', verifier: 'test' }
    try {
      await party.authorizationUrl(values)
    } catch (error) {
      return { step: 'answered', ok: false, detail: (error as Error).message }
    }
    const detail =
      `to be registered there: the redirect URI ${redirectUri}, after the sign-out ${places.afterSignOut}, ` +
      `back-channel logout ${places.backChannel}, front-channel logout ${places.frontChannel}`
    return { step: 'answered', ok: true, detail }
  }

  async close(): Promise<void> {
    this.#closed.abort()
  }
}
