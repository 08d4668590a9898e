/** Service provider of one identity provider: the messages that go there, and the judgement on those from there. */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import type { AuthDomainAttributes, SamlOptions } from '../../../model/external-auths.ts'
import type { Secret } from '../../../model/secret.ts'
import type { Person } from '../method.ts'
import type { Assertion, NameId } from './assertion.ts'
import { SamlError } from './error.ts'
import type { Idp } from './idp.ts'
import {
  judgeLogoutRequest,
  judgeLogoutResponse,
  type LogoutRequest,
  postedLogout,
  redirectedLogout,
  type VerifiedLogout,
} from './logout.ts'
import type { Endpoint, IdpMetadata } from './metadata.ts'
import { NAME_ID_FORMATS } from './names.ts'
import { ownMetadata } from './own-metadata.ts'
import { personOf } from './person.ts'
import {
  type Parameter,
  postFields,
  redirectUrl,
  type Sender,
  signInRequest,
  signOutRequest,
  signOutResponse,
} from './request.ts'
import { judgeResponse, type ReadResponse } from './response.ts'

/** Our own URLs. */
export interface OwnUrls {
  entityId: string
  acs: string
  slo: string
}

export interface SamlSecrets {
  /** PEM of the key in use, and of the next one. */
  privateKey?: Secret
  nextPrivateKey?: Secret
}

export interface ServiceProviderSettings {
  options: SamlOptions
  secrets: SamlSecrets
  attributes: AuthDomainAttributes
  idp: Idp
  /** Milliseconds since the epoch. */
  now: () => number
}

/** A message on its way through the browser: by a redirect, or by a form. */
export type Outgoing =
  | { binding: 'redirect'; url: string }
  | { binding: 'post'; url: string; fields: readonly [name: string, value: string][] }

export interface SignedIn {
  person: Person
  assertion: Assertion
}

/** A message of a sign-out, as it came. */
export type Incoming = { query: string } | { parameter: Parameter; message: string; relayState?: string }

export type Logout =
  | { kind: 'request'; request: LogoutRequest; relayState?: string }
  | { kind: 'response'; relayState?: string }

export class ServiceProvider {
  readonly #settings: ServiceProviderSettings

  constructor(settings: ServiceProviderSettings) {
    this.#settings = settings
  }

  get options(): SamlOptions {
    return this.#settings.options
  }

  metadata(urls: OwnUrls): string {
    const { certificate, nextCertificate } = this.options
    const certificates = [certificate, ...(nextCertificate === undefined ? [] : [nextCertificate])]
    return ownMetadata({ ...urls, certificates, ...this.#nameIdFormat() })
  }

  /** Returns a request to sign in. @throws IdpError */
  async signIn(urls: OwnUrls, { id, relayState }: { id: string; relayState?: string }): Promise<Outgoing> {
    const { signIn } = await this.#settings.idp.metadata()
    const { authnContexts, forceAuthn } = this.options
    const request = { acs: urls.acs, authnContexts, forceAuthn, ...this.#nameIdFormat() }
    const xml = signInRequest(urls, { id, now: this.#settings.now(), destination: signIn.url, ...request })
    return this.#outgoing(urls, signIn, 'SAMLRequest', xml, relayState)
  }

  /**
   * Judges a response. `requestId`: ID of our request, or undefined if the identity provider may have begun.
   * @throws SamlError, IdpError
   */
  async judge(response: ReadResponse, urls: OwnUrls, requestId: string | undefined): Promise<SignedIn> {
    const { attributes, options, secrets } = this.#settings
    const keys = [secrets.privateKey, secrets.nextPrivateKey].flatMap((key) => (key ? [keyOf(key)] : []))
    return await this.#withFreshKeys(async (idp) => {
      const assertion = await judgeResponse(response, {
        ...this.#rules(idp, urls.acs),
        audience: urls.entityId,
        authnContexts: options.authnContexts,
        keys,
        isEncryptionNeeded: options.requireEncryption,
        ...(requestId !== undefined && { requestId }),
      })
      return { assertion, person: personOf(assertion, idp.entityId, options, attributes) }
    })
  }

  /** Returns a request to sign out, or undefined if the identity provider has no place for it. @throws IdpError */
  async signOut(
    urls: OwnUrls,
    { id, ...session }: { id: string; nameId: NameId; sessionIndex?: string },
  ): Promise<Outgoing | undefined> {
    const { signOut } = await this.#settings.idp.metadata()
    if (!signOut) return undefined
    const xml = signOutRequest(urls, { id, now: this.#settings.now(), destination: signOut.url, ...session })
    return this.#outgoing(urls, signOut, 'SAMLRequest', xml, undefined)
  }

  /** Judges a message of a sign-out. `isOwn`: whether an ID is of our own request. @throws SamlError, IdpError */
  async judgeLogout(incoming: Incoming, urls: OwnUrls, isOwn: (id: string) => boolean): Promise<Logout> {
    return await this.#withFreshKeys(async (idp) => {
      const verified: VerifiedLogout =
        'query' in incoming
          ? redirectedLogout(incoming.query, idp.certificates)
          : await postedLogout(incoming.parameter, incoming.message, idp.certificates)
      const relayState = 'query' in incoming ? verified.relayState : incoming.relayState
      const state = relayState === undefined ? {} : { relayState }
      const rules = this.#rules(idp, urls.slo)
      if (verified.parameter === 'SAMLRequest')
        return { kind: 'request', request: judgeLogoutRequest(verified.element, rules), ...state }
      judgeLogoutResponse(verified.element, rules, isOwn)
      return { kind: 'response', ...state }
    })
  }

  /** Returns the answer to a request to sign out, or undefined if there is no place for it. @throws IdpError */
  async loggedOut(
    urls: OwnUrls,
    answer: { id: string; inResponseTo: string; relayState?: string },
  ): Promise<Outgoing | undefined> {
    const { signOut } = await this.#settings.idp.metadata()
    if (!signOut) return undefined
    const place = { ...signOut, url: signOut.responseUrl ?? signOut.url }
    const { id, inResponseTo, relayState } = answer
    const sending = { id, now: this.#settings.now(), destination: place.url, inResponseTo }
    return this.#outgoing(urls, place, 'SAMLResponse', signOutResponse(urls, sending), relayState)
  }

  #outgoing(
    { entityId }: OwnUrls,
    { binding, url }: Endpoint,
    parameter: Parameter,
    xml: string,
    relayState: string | undefined,
  ): Outgoing {
    const { options, secrets } = this.#settings
    if (!secrets.privateKey) throw new Error('expected a private_key to sign with: set it')
    const sender: Sender = {
      entityId,
      key: secrets.privateKey.revealText(),
      certificate: options.certificate,
    }
    const message = { parameter, xml, ...(relayState !== undefined && { relayState }) }
    if (binding === 'post') return { binding, url, fields: postFields(sender, message) }
    return { binding, url: redirectUrl(sender, { destination: url, ...message }) }
  }

  /** Runs a judgement once more, with metadata read anew, if no certificate fits: it may be a new one. */
  async #withFreshKeys<T>(judge: (idp: IdpMetadata) => Promise<T>): Promise<T> {
    const { idp } = this.#settings
    const metadata = await idp.metadata()
    try {
      return await judge(metadata)
    } catch (error) {
      if (!(error instanceof SamlError) || error.check !== 'signature') throw error
      const fresh = await idp.metadata(true)
      if (fresh === metadata) throw error
      return await judge(fresh)
    }
  }

  #rules({ entityId, certificates }: IdpMetadata, destination: string) {
    const { now, options } = this.#settings
    return { issuer: entityId, destination, certificates, skewMs: options.clockSkew * 1000, now: now() }
  }

  #nameIdFormat(): { nameIdFormat?: string } {
    const { nameIdFormat } = this.options
    return nameIdFormat === 'unspecified' ? {} : { nameIdFormat: NAME_ID_FORMATS[nameIdFormat] }
  }
}

const keyOf = (secret: Secret): KeyObject => createPrivateKey(secret.revealText())
