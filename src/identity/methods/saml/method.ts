/** Sign-in at an identity provider of SAML 2.0, by browser. It proves no passwords. */
import type { AuthDomainAttributes, ExternalAuth } from '../../../model/external-auths.ts'
import type { MethodAnswer, SignInMethod, TestStep } from '../method.ts'
import { exchange } from '../oidc/https-json.ts'
import { Idp } from './idp.ts'
import { ownUrls } from './own-metadata.ts'
import { type SamlSecrets, ServiceProvider } from './service-provider.ts'

const NO_PASSWORDS = 'persons of this domain sign in at its identity provider, not by passwords'

export interface SamlSettings {
  auth: Extract<ExternalAuth, { type: 'SAML' }>
  attributes: AuthDomainAttributes
  secrets: SamlSecrets
  /** Origin of this broker's pages. */
  site: string
  /** Milliseconds since the epoch. */
  now: () => number
  /** Told each failure to read the metadata. */
  onFailure: (server: string, error: Error) => void
}

export class SamlMethod implements SignInMethod {
  readonly #settings: SamlSettings
  readonly #idp: Idp
  readonly #closed = new AbortController()
  readonly serviceProvider: ServiceProvider

  constructor(settings: SamlSettings) {
    const { auth, attributes, now, secrets } = settings
    const { options, timeoutMs } = auth
    const source = { caCertificates: options.caCertificates, timeoutMs }
    this.#settings = settings
    this.#idp = new Idp({
      options,
      get: async (url) => {
        const accept = { accept: 'application/samlmetadata+xml, application/xml, text/xml' }
        const { status, body } = await exchange(url, source, this.#closed.signal, { headers: accept })
        if (status !== 200) throw new Error(`${url.href}: expected status 200, got ${status}`)
        return body
      },
      now,
      onFailure: (error) => settings.onFailure(auth.servers[0]?.host ?? '', error),
    })
    this.serviceProvider = new ServiceProvider({ options, secrets, attributes, idp: this.#idp, now })
  }

  async prove(): Promise<MethodAnswer> {
    return { result: 'unavailable', reason: NO_PASSWORDS }
  }

  async answer(): Promise<MethodAnswer> {
    return { result: 'unavailable', reason: NO_PASSWORDS }
  }

  async test(): Promise<TestStep[]> {
    const { auth, site } = this.#settings
    const { acs, entityId, slo } = ownUrls(site, auth.authenticationName)
    try {
      const { certificates, signIn, signOut, ...idp } = await this.#idp.metadata()
      const ends = signOut ? `, sign-outs at ${signOut.url}` : ', no single logout'
      return [
        {
          step: 'reached',
          ok: true,
          detail: `${idp.entityId}: ${certificates.length} certificates, sign-ins at ${signIn.url} by ${signIn.binding}${ends}`,
        },
        {
          step: 'answered',
          ok: true,
          detail: `to register there: the metadata at ${entityId}, which is the entityID as well; responses to ${acs}, sign-outs to ${slo}`,
        },
      ]
    } catch (error) {
      return [{ step: 'reached', ok: false, detail: (error as Error).message }]
    }
  }

  async close(): Promise<void> {
    this.#closed.abort()
  }
}
