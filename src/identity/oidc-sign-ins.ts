/**
 * Sign-ins by browser at issuers of OpenID Connect, from the first redirect to the person, and their ends. The attempts that
 * wait for a browser's return are bound to it, count once, and are limited in number and time.
 */
import { randomBytes } from 'node:crypto'
import type { AuthDomain, ExternalAuth, OidcClient } from '../model/external-auths.ts'
import type { Store } from '../store/store.ts'
import { type Dialogue, Dialogues, LIMITS } from './dialogues.ts'
import type { Client, Federated, FederatedOutcome } from './federated.ts'
import { addressesOf } from './methods/oidc/addresses.ts'
import { OidcMethod } from './methods/oidc/method.ts'
import type { RelyingParty } from './methods/oidc/relying-party.ts'
import { TokenError } from './methods/oidc/signed.ts'
import type { MethodRegistry } from './methods/registry.ts'
import { RENEWED_MS } from './provider-check.ts'
import type { ProviderSessions } from './provider-sessions.ts'

/** Milliseconds within which the browser has to be back from the provider. */
export const ATTEMPT_MS = 600_000
const RANDOM_BYTES = 32
const ALL = { limit: -1, offset: 0 }

/** Told the ids of the users whose sessions are about to end. */
type Announce = (userIds: readonly string[]) => Promise<void>
type OidcAuth = Extract<ExternalAuth, { type: 'OIDC' }>

/** A provider where persons of a domain sign in. */
export interface Provider {
  auth: OidcAuth
  client: OidcClient
  domain: AuthDomain
}

interface Attempt extends Dialogue {
  auth: string
  nonce: string
  verifier: string
  redirectUri: string
  return: string
}

export interface OidcSignInsOptions {
  store: Pick<Store, 'authDomains' | 'externalAuths' | 'providerSessions'>
  registry: Pick<MethodRegistry, 'of'>
  federated: Pick<Federated, 'signIn' | 'refused' | 'unjudged'>
  sessions: Pick<ProviderSessions, 'loggedOut' | 'tokensOf'>
  /** Origin of this broker's pages, such as `https://bastion.example.org`. */
  site: string
  /** Milliseconds since the epoch. */
  now: () => number
}

export type Begun =
  | { result: 'redirect'; url: URL }
  | ({ result: 'ended' } & FederatedOutcome)
  | { result: 'unknown' }

export type Finished = { return: string } & (
  | ({ result: 'ended' } & FederatedOutcome)
  /** The provider has said no, by its code. */
  | { result: 'denied'; error: string; description: string }
  /** No such attempt waits, or one of another browser. */
  | { result: 'stale' }
)

export class OidcSignIns {
  readonly #options: OidcSignInsOptions
  readonly #attempts: Dialogues<Attempt>

  constructor(options: OidcSignInsOptions) {
    this.#options = options
    this.#attempts = new Dialogues(options.now, () => undefined, { ...LIMITS, ms: ATTEMPT_MS })
  }

  /** Number of attempts that wait. */
  get waiting(): number {
    return this.#attempts.size
  }

  /** Returns the providers, by the names of their objects: each in one domain only. */
  async providers(): Promise<Provider[]> {
    const { authDomains, externalAuths } = this.#options.store
    const [domains, auths] = await Promise.all([authDomains.list(ALL), externalAuths.list(ALL)])
    return auths.items.flatMap((auth) => {
      const client = auth.type === 'OIDC' ? auth.options.client : undefined
      const [domain, ...others] = domains.items.filter(({ externalAuthIds }) =>
        externalAuthIds.includes(auth.id),
      )
      return auth.type === 'OIDC' && client && domain && others.length === 0 ? [{ auth, client, domain }] : []
    })
  }

  /** Begins an attempt at a provider, for the browser that `owner` names. `path`: where the browser goes at the end. */
  async begin(name: string, path: string, client: Client): Promise<Begun> {
    const provider = await this.#provider(name)
    if (!provider) return { result: 'unknown' }
    const { auth } = provider
    const values = {
      nonce: random(),
      verifier: random(),
      redirectUri: addressesOf(this.#options.site, auth.authenticationName).redirectUri,
    }
    const attempt = { ...client, ...values, name: client.owner, auth: auth.id, return: path }
    const state = this.#attempts.open(attempt)
    try {
      const party = await this.#party(provider)
      return { result: 'redirect', url: await party.authorizationUrl({ ...values, state }) }
    } catch (error) {
      this.#attempts.end(state)
      const { federated } = this.#options
      return { result: 'ended', ...(await federated.unjudged(provider, client, (error as Error).message)) }
    }
  }

  /** Goes on with an attempt, once, for its own browser. `parameters`: those of the authorization response. */
  async finish(name: string, parameters: URLSearchParams, client: Client): Promise<Finished> {
    const state = parameters.getAll('state')
    const attempt = state.length === 1 ? this.#attempts.take(state[0]!, client.owner) : undefined
    const provider = await this.#provider(name)
    if (!attempt || provider?.auth.id !== attempt.auth)
      return { result: 'stale', return: attempt?.return ?? '' }
    const { federated } = this.#options
    const ended = async (outcome: Promise<FederatedOutcome>): Promise<Finished> => ({
      result: 'ended',
      return: attempt.return,
      ...(await outcome),
    })
    let party: RelyingParty
    try {
      party = await this.#party(provider)
    } catch (error) {
      return await ended(federated.unjudged(provider, client, (error as Error).message))
    }
    const answer = await party.redeem(parameters, { ...attempt, state: state[0]! })
    if (answer.result === 'denied') return { ...answer, return: attempt.return }
    if (answer.result === 'refused') return await ended(federated.refused(client, answer.reason))
    if (answer.result === 'unavailable')
      return await ended(federated.unjudged(provider, client, answer.reason))
    const { person, subject, sid, tokens } = answer
    const lasts = tokens.refreshToken === undefined ? provider.client.lifetime * 60_000 : RENEWED_MS
    const session = { subject, tokens, ends: this.#options.now() + lasts, ...(sid !== undefined && { sid }) }
    return await ended(federated.signIn({ ...provider, person, session }, client))
  }

  /**
   * Ends a session at a provider on this side. Returns where the browser ends it at the provider, or undefined if that is
   * nowhere. The browser returns from there to the sign-in page.
   */
  async signOut(providerSession: string): Promise<URL | undefined> {
    const { sessions, site, store } = this.#options
    const session = await store.providerSessions.find(providerSession)
    if (!session) return undefined
    const auth = await store.externalAuths.find(session.externalAuthId)
    const provider = auth && (await this.#provider(auth.authenticationName))
    const { idToken } = sessions.tokensOf(session)
    if (provider?.client.logoutEndsSessions) await store.providerSessions.remove(session.id)
    else await store.providerSessions.signOut(session.id)
    if (!provider) return undefined
    const { afterSignOut } = addressesOf(site, provider.auth.authenticationName)
    return await (await this.#party(provider)).endSessionUrl(idToken, afterSignOut)
  }

  /**
   * Ends the sessions that a Logout Token names (OpenID Connect Back-Channel Logout 1.0). Returns undefined if there is no such
   * provider.
   * @throws TokenError, IssuerError
   */
  async backChannel(name: string, token: string, announce: Announce): Promise<true | undefined> {
    const provider = await this.#provider(name)
    if (!provider) return undefined
    const named = await (await this.#party(provider)).loggedOut(token)
    return await this.#loggedOut(provider, named, announce)
  }

  /**
   * Ends the session that a page of the provider names (OpenID Connect Front-Channel Logout 1.0): its `sid` is known to the
   * provider and to the browser only. Returns undefined if there is no such provider.
   * @throws TokenError
   */
  async frontChannel(
    name: string,
    { iss, sid }: { iss: string; sid: string },
    announce: Announce,
  ): Promise<true | undefined> {
    const provider = await this.#provider(name)
    if (!provider) return undefined
    if (iss !== provider.auth.options.issuer) throw new TokenError('issuer', 'it is of another issuer')
    if (sid === '') throw new TokenError('session', 'expected sid')
    return await this.#loggedOut(provider, { sid }, announce)
  }

  async #loggedOut(
    { auth, client }: Provider,
    named: { subject?: string; sid?: string },
    announce: Announce,
  ): Promise<true> {
    await this.#options.sessions.loggedOut(auth.id, named, client.logoutEndsSessions, announce)
    return true
  }

  async #provider(name: string): Promise<Provider | undefined> {
    return (await this.providers()).find(({ auth }) => auth.authenticationName === name)
  }

  /** @throws Error if its secrets cannot be opened */
  async #party({ auth, domain }: Provider): Promise<RelyingParty> {
    const method = await this.#options.registry.of(auth, domain.attributes)
    if (method instanceof OidcMethod && method.relyingParty) return method.relyingParty
    throw new Error(`${auth.authenticationName} is no client of its issuer`)
  }
}

const random = (): string => randomBytes(RANDOM_BYTES).toString('base64url')
