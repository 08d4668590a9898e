/** Sign-ins at an issuer: by access tokens, and by browser. It proves no passwords. */
import type { AuthDomainAttributes, ExternalAuth } from '../../../model/external-auths.ts'
import type { BearerAnswer, MethodAnswer, SignInMethod, TestStep } from '../method.ts'
import type { ClientSecrets } from './client.ts'
import { getJson } from './https-json.ts'
import { Issuer, IssuerError } from './issuer.ts'
import { isMultiFactor, personOf, scopesOf } from './person.ts'
import { RelyingParty } from './relying-party.ts'
import { judgeToken } from './token.ts'

const NO_PASSWORDS = 'persons of this domain sign in at its issuer, not by passwords'

export interface OidcSettings {
  auth: Extract<ExternalAuth, { type: 'OIDC' }>
  attributes: AuthDomainAttributes
  secrets: ClientSecrets
  /** Milliseconds since the epoch. */
  now: () => number
  /** Told each failure of the issuer. */
  onFailure: (server: string, error: Error) => void
}

export class OidcMethod implements SignInMethod {
  readonly #settings: OidcSettings
  readonly #issuer: Issuer
  readonly #closed = new AbortController()
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

  async bear(token: string): Promise<BearerAnswer> {
    const { auth, attributes, now } = this.#settings
    try {
      const claims = await judgeToken(token, auth.options, this.#issuer.key, now())
      return {
        result: 'accepted',
        person: personOf(claims, auth.options, attributes),
        scopes: scopesOf(claims),
        isMultiFactor: isMultiFactor(claims),
      }
    } catch (error) {
      const result = error instanceof IssuerError ? 'unavailable' : 'rejected'
      return { result, reason: (error as Error).message }
    }
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
    return [
      { step: 'reached', ok: true, detail: `the keys of ${this.#settings.auth.options.issuer} were read` },
    ]
  }

  async close(): Promise<void> {
    this.#closed.abort()
  }
}
