/** The methods in use: one for each server object and set of attributes, made anew when one of them has changed. */
import { isDeepStrictEqual } from 'node:util'
import { Replays } from '../../kerberos/replays.ts'
import type { AuthDomainAttributes, ExternalAuth, ExternalAuthType } from '../../model/external-auths.ts'
import type { Secret } from '../../model/secret.ts'
import type { Store } from '../../store/store.ts'
import { openExternal } from '../external-secrets.ts'
import type { HashSeal } from '../hashes.ts'
import { KerberosMethod } from './kerberos/method.ts'
import { LdapMethod } from './ldap/method.ts'
import type { SignInMethod } from './method.ts'
import { OidcMethod } from './oidc/method.ts'
import { RadiusMethod } from './radius/method.ts'
import { SamlMethod } from './saml/method.ts'
import { TacacsMethod } from './tacacs/method.ts'

/** Types of servers that can be asked. */
export const METHOD_TYPES = [
  'LDAP',
  'RADIUS',
  'TACACS',
  'KERBEROS',
  'OIDC',
  'SAML',
] as const satisfies readonly ExternalAuthType[]

/** Most methods that are kept open. */
const MAX_KEPT = 256

interface Kept {
  auth: ExternalAuth
  attributes: AuthDomainAttributes
  method: SignInMethod
}

export interface MethodOptions {
  store: Pick<Store, 'externalAuths'>
  vault: Pick<HashSeal, 'open'>
  /** Milliseconds since the epoch. */
  now: () => number
  /** Origin of this broker's pages. */
  site: string
  /** Told each failure of a server, with the name of its object. */
  onFailure: (authenticationName: string, server: string, error: Error) => void
}

export class MethodRegistry {
  readonly #options: MethodOptions
  readonly #kept = new Map<string, Kept>()
  /** Methods that are being made: sign-ins at the same time share one. */
  readonly #making = new Map<string, Promise<SignInMethod>>()
  /** Outlives the methods, which are made anew. */
  readonly #replays: Replays
  #isClosed = false

  constructor(options: MethodOptions) {
    this.#options = options
    this.#replays = new Replays(options.now())
  }

  /** Returns the method of a server object, as stored now. @throws UnsealError, Error after `close` */
  async of(auth: ExternalAuth, attributes: AuthDomainAttributes = {}): Promise<SignInMethod> {
    const key = `${auth.id} ${JSON.stringify(attributes)}`
    const kept = this.#kept.get(key)
    if (kept && isDeepStrictEqual(kept.auth, auth)) return kept.method
    const revision = `${key} ${JSON.stringify(auth)}`
    const making =
      this.#making.get(revision) ??
      this.#replaced(key, auth, attributes).finally(() => this.#making.delete(revision))
    this.#making.set(revision, making)
    return await making
  }

  async #replaced(key: string, auth: ExternalAuth, attributes: AuthDomainAttributes): Promise<SignInMethod> {
    const method = await this.make(auth, attributes)
    if (this.#isClosed) throw new Error('the broker ends')
    this.#forget(key)
    const [oldest] = this.#kept.keys()
    if (this.#kept.size >= MAX_KEPT && oldest !== undefined) this.#forget(oldest)
    this.#kept.set(key, { auth, attributes, method })
    return method
  }

  /** Returns a method of its own, which the caller closes. */
  async make(auth: ExternalAuth, attributes: AuthDomainAttributes): Promise<SignInMethod> {
    const { store, vault, now, site, onFailure } = this.#options
    const sealed = await store.externalAuths.sealedSecrets(auth.id)
    const secret = (name: string): Secret | undefined => {
      const bytes = sealed.get(name)
      return bytes && openExternal(vault, auth.id, name, bytes)
    }
    const common = {
      attributes,
      now,
      onFailure: (server: string, error: Error) => onFailure(auth.authenticationName, server, error),
    }
    if (auth.type === 'SAML') {
      const [privateKey, nextPrivateKey] = [secret('private_key'), secret('next_private_key')]
      const secrets = { ...(privateKey && { privateKey }), ...(nextPrivateKey && { nextPrivateKey }) }
      return new SamlMethod({ ...common, auth, secrets, site })
    }
    if (auth.type === 'OIDC') {
      const [clientSecret, privateKey] = [secret('client_secret'), secret('private_key')]
      const secrets = { ...(clientSecret && { clientSecret }), ...(privateKey && { privateKey }) }
      return new OidcMethod({ ...common, auth, secrets, site })
    }
    if (auth.type === 'KERBEROS') {
      const keytab = secret('keytab')
      const { now, onFailure } = common
      return new KerberosMethod({
        auth,
        secrets: { ...(keytab && { keytab }) },
        replays: this.#replays,
        now,
        onFailure,
      })
    }
    if (auth.type === 'TACACS') {
      const sharedSecret = secret('shared_secret')
      return new TacacsMethod({ ...common, auth, secrets: { ...(sharedSecret && { sharedSecret }) } })
    }
    if (auth.type === 'RADIUS') {
      const sharedSecret = secret('shared_secret')
      return new RadiusMethod({ ...common, auth, secrets: { ...(sharedSecret && { sharedSecret }) } })
    }
    const [bindPassword, clientKey] = [secret('bind_password'), secret('client_key')]
    return new LdapMethod({
      ...common,
      auth,
      secrets: { ...(bindPassword && { bindPassword }), ...(clientKey && { clientKey }) },
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const key of [...this.#kept.keys()]) this.#forget(key)
  }

  /** Closes a method: attempts on it end as unavailable. */
  #forget(key: string): void {
    const kept = this.#kept.get(key)
    this.#kept.delete(key)
    void kept?.method.close()
  }
}
