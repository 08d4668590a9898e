/** Sign-ins by browser at identity providers of SAML 2.0, from the first redirect to the person, and their ends. */
import { createHash } from 'node:crypto'
import type { AuthDomain, ExternalAuth } from '../model/external-auths.ts'
import type { Id } from '../model/objects.ts'
import type { Store } from '../store/store.ts'
import type { Client, Federated, FederatedOutcome } from './federated.ts'
import type { MethodRegistry } from './methods/registry.ts'
import type { NameId } from './methods/saml/assertion.ts'
import { SamlError } from './methods/saml/error.ts'
import { IdpError } from './methods/saml/idp.ts'
import { SamlMethod } from './methods/saml/method.ts'
import { NAME_ID_FORMATS } from './methods/saml/names.ts'
import { ownUrls } from './methods/saml/own-metadata.ts'
import { MAX_RELAY_STATE } from './methods/saml/request.ts'
import { type ReadResponse, readResponse } from './methods/saml/response.ts'
import type { Incoming, Outgoing, OwnUrls, ServiceProvider } from './methods/saml/service-provider.ts'
import type { ProviderSessions } from './provider-sessions.ts'
import { isOwnRequest, REQUEST_MS, requestId } from './saml-requests.ts'

/** Messages that are remembered as used: new ones are refused beyond them, not old ones forgotten. */
export const MAX_USED = 65_536
const ALL = { limit: -1, offset: 0 }

type SamlAuth = Extract<ExternalAuth, { type: 'SAML' }>

/** An identity provider where persons of a domain sign in. */
export interface SamlProvider {
  auth: SamlAuth
  domain: AuthDomain
}

export interface SamlSignInsOptions {
  store: Pick<Store, 'authDomains' | 'externalAuths' | 'providerSessions' | 'usedMessages'>
  registry: Pick<MethodRegistry, 'of'>
  federated: Pick<Federated, 'signIn' | 'refused' | 'unjudged'>
  sessions: Pick<ProviderSessions, 'loggedOut'>
  /** Origin of this broker's pages, such as `https://bastion.example.org`. */
  site: string
  /** Milliseconds since the epoch. */
  now: () => number
  randomBytes: (size: number) => Uint8Array
}

/** A browser, by the secret of its cookie. */
export interface BrowserClient extends Client {
  browser: string
}

export type SamlEnded = { result: 'ended'; return: string } & FederatedOutcome
export type SamlBegun = { result: 'sent'; message: Outgoing } | SamlEnded | { result: 'unknown' }
export type SamlFinished =
  | SamlEnded
  /** It answers no request of this browser. */
  | { result: 'stale' }
  | { result: 'unknown' }
export type SamlLoggedOut =
  /** The identity provider has asked for it. `message`: the answer; absent if it has no place for one. */
  | { result: 'obeyed'; message?: Outgoing }
  /** It has obeyed. */
  | { result: 'ended' }
  | { result: 'refused'; detail: string }
  | { result: 'unknown' }

export class SamlSignIns {
  readonly #options: SamlSignInsOptions

  constructor(options: SamlSignInsOptions) {
    this.#options = options
  }

  /** Returns the identity providers: each in one domain only. */
  async providers(): Promise<SamlProvider[]> {
    const { authDomains, externalAuths } = this.#options.store
    const [domains, auths] = await Promise.all([authDomains.list(ALL), externalAuths.list(ALL)])
    return auths.items.flatMap((auth) => {
      if (auth.type !== 'SAML') return []
      const [domain, ...others] = domains.items.filter(({ externalAuthIds }) =>
        externalAuthIds.includes(auth.id),
      )
      return domain && others.length === 0 ? [{ auth, domain }] : []
    })
  }

  /** Returns our metadata for an identity provider, or undefined if there is none of that name. */
  async metadata(name: string): Promise<string | undefined> {
    const auth = await this.#options.store.externalAuths.find(name)
    if (auth?.type !== 'SAML' || auth.authenticationName !== name) return undefined
    return (await this.#partyOf(auth, {})).metadata(this.#urls(auth))
  }

  /** Begins a sign-in. `path`: where the browser goes at the end. */
  async begin(name: string, path: string, client: BrowserClient): Promise<SamlBegun> {
    const provider = await this.#provider(name)
    if (!provider) return { result: 'unknown' }
    const state = MAX_RELAY_STATE < Buffer.byteLength(path) ? '' : path
    const { now, randomBytes } = this.#options
    const bound = { browser: client.browser, auth: provider.auth.id, kind: 'sign_in', state } as const
    try {
      const party = await this.#party(provider)
      const request = { id: requestId(bound, now(), randomBytes), ...(state !== '' && { relayState: state }) }
      return { result: 'sent', message: await party.signIn(this.#urls(provider.auth), request) }
    } catch (error) {
      return { ...(await this.#unjudged(provider, client, error)), return: path }
    }
  }

  /** Judges a posted response, for the browser that has begun, or for any where the identity provider may begin. */
  async finish(
    name: string,
    posted: { response: string; relayState: string },
    client: BrowserClient,
  ): Promise<SamlFinished> {
    const provider = await this.#provider(name)
    if (!provider) return { result: 'unknown' }
    try {
      const read = readResponse(posted.response)
      const asked = this.#askedFor(read, posted.relayState, provider, client)
      if (asked === 'stale') return { result: 'stale' }
      const party = await this.#party(provider)
      const { person, assertion } = await party.judge(read, this.#urls(provider.auth), asked)
      await this.#useOnce(provider.auth.id, assertion.id, asked, assertion.end)
      const { nameId, sessionEnd, sessionIndex } = assertion
      const longest = this.#options.now() + party.options.lifetime * 60_000
      const session = {
        subject: subjectOf(nameId),
        ends: Math.min(longest, sessionEnd ?? longest),
        ...(sessionIndex !== undefined && { sid: sessionIndex }),
      }
      const outcome = await this.#options.federated.signIn({ ...provider, person, session }, client)
      return { result: 'ended', return: asked === undefined ? '' : posted.relayState, ...outcome }
    } catch (error) {
      if (!(error instanceof SamlError))
        return { ...(await this.#unjudged(provider, client, error)), return: '' }
      const outcome = await this.#options.federated.refused(client, error.message)
      return { result: 'ended', return: '', ...outcome }
    }
  }

  /**
   * Returns the ID of our request that it answers, or undefined if it answers none and may; what it says of that is proved
   * with its signature.
   */
  #askedFor(
    { inResponseTo }: ReadResponse,
    state: string,
    { auth }: SamlProvider,
    { browser }: BrowserClient,
  ): string | undefined | 'stale' {
    if (inResponseTo === undefined) {
      if (auth.options.idpInitiated) return undefined
      throw new SamlError(
        'in_response_to',
        'sign-ins that the identity provider begins are not allowed (idp_initiated)',
      )
    }
    const bound = { browser, auth: auth.id, kind: 'sign_in', state } as const
    return isOwnRequest(inResponseTo, bound, this.#options.now()) ? inResponseTo : 'stale'
  }

  /** @throws SamlError `replay` for an assertion or a request that has signed in before */
  async #useOnce(auth: Id, assertionId: string, request: string | undefined, ends: number): Promise<void> {
    const { now, store } = this.#options
    const used = [digestOf('assertion', auth, assertionId)]
    if (request !== undefined) used.push(digestOf('request', auth, request))
    const until = Math.max(ends, now() + REQUEST_MS)
    const result = await store.usedMessages.use(used, until, now(), MAX_USED)
    if (result === 'used')
      throw new SamlError('replay', 'the assertion, or its request, has signed in before')
    if (result === 'full') throw new SamlError('replay', `more than ${MAX_USED} messages are remembered`)
  }

  /**
   * Ends a session at an identity provider on this side. Returns the request by which the browser ends it there, or undefined if
   * it is of no identity provider, or has no place for that.
   */
  async signOut(sessionId: Id, browser: string): Promise<Outgoing | undefined> {
    const { now, randomBytes, store } = this.#options
    const session = await store.providerSessions.find(sessionId)
    const auth = session && (await store.externalAuths.find(session.externalAuthId))
    if (!session || auth?.type !== 'SAML') return undefined
    if (auth.options.logoutEndsSessions) await store.providerSessions.remove(session.id)
    else await store.providerSessions.signOut(session.id)
    const bound = { browser, auth: auth.id, kind: 'sign_out', state: '' } as const
    const request = {
      id: requestId(bound, now(), randomBytes),
      nameId: nameIdOf(session.subject),
      ...(session.sid !== '' && { sessionIndex: session.sid }),
    }
    return await (await this.#partyOf(auth, {})).signOut(this.#urls(auth), request)
  }

  /** Judges a message of a sign-out, and obeys. `announce` is called with the users before. */
  async loggedOut(
    name: string,
    incoming: Incoming,
    browser: string | undefined,
    announce: (userIds: readonly Id[]) => Promise<void>,
  ): Promise<SamlLoggedOut> {
    const provider = await this.#provider(name)
    if (!provider) return { result: 'unknown' }
    const { auth } = provider
    const { now, randomBytes, sessions } = this.#options
    const urls = this.#urls(auth)
    try {
      const party = await this.#party(provider)
      const isOwn = (id: string) =>
        browser !== undefined &&
        isOwnRequest(id, { browser, auth: auth.id, kind: 'sign_out', state: '' }, now())
      const logout = await party.judgeLogout(incoming, urls, isOwn)
      if (logout.kind === 'response') return { result: 'ended' }
      const { id, nameId, sessionIndexes } = logout.request
      const subject = subjectOf(nameId)
      const named =
        sessionIndexes.length === 0 ? [{ subject }] : sessionIndexes.map((sid) => ({ subject, sid }))
      for (const one of named)
        await sessions.loggedOut(auth.id, one, auth.options.logoutEndsSessions, announce)
      const { relayState } = logout
      const answer = {
        id: `_${Buffer.from(randomBytes(20)).toString('hex')}`,
        inResponseTo: id,
        ...(relayState !== undefined && { relayState }),
      }
      const message = await party.loggedOut(urls, answer)
      return { result: 'obeyed', ...(message && { message }) }
    } catch (error) {
      if (error instanceof SamlError || error instanceof IdpError)
        return { result: 'refused', detail: error.message }
      throw error
    }
  }

  #urls({ authenticationName }: Pick<SamlAuth, 'authenticationName'>): OwnUrls {
    return ownUrls(this.#options.site, authenticationName)
  }

  async #unjudged(
    provider: SamlProvider,
    client: Client,
    error: unknown,
  ): Promise<{ result: 'ended' } & FederatedOutcome> {
    const reason = (error as Error).message
    return { result: 'ended', ...(await this.#options.federated.unjudged(provider, client, reason)) }
  }

  async #provider(name: string): Promise<SamlProvider | undefined> {
    return (await this.providers()).find(({ auth }) => auth.authenticationName === name)
  }

  /** @throws Error if its secrets cannot be opened */
  async #party({ auth, domain }: SamlProvider): Promise<ServiceProvider> {
    return await this.#partyOf(auth, domain.attributes)
  }

  async #partyOf(auth: SamlAuth, attributes: AuthDomain['attributes']): Promise<ServiceProvider> {
    const method = await this.#options.registry.of(auth, attributes)
    if (method instanceof SamlMethod) return method.serviceProvider
    throw new Error(`${auth.authenticationName} is no identity provider`)
  }
}

/** A NameID without a format is of the unspecified one (SAML 2.0 Core, 8.3.1). */
function subjectOf({ value, format, nameQualifier, spNameQualifier }: NameId): string {
  const { unspecified } = NAME_ID_FORMATS
  return JSON.stringify([value, format ?? unspecified, nameQualifier ?? '', spNameQualifier ?? ''])
}

function nameIdOf(subject: string): NameId {
  const [value, format, nameQualifier, spNameQualifier] = JSON.parse(subject) as [
    string,
    string,
    string,
    string,
  ]
  return {
    value,
    format,
    ...(nameQualifier !== '' && { nameQualifier }),
    ...(spNameQualifier !== '' && { spNameQualifier }),
  }
}

function digestOf(kind: 'assertion' | 'request', auth: Id, id: string): Uint8Array {
  return createHash('sha256')
    .update(JSON.stringify([kind, auth, id]))
    .digest()
}
