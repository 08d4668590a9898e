/**
 * Sign-ins by access tokens: the issuer that a token names leads to the one domain whose issuer, audience and claims it fits,
 * and its subject to the person.
 */
import type { AuthDomain, ExternalAuth } from '../model/external-auths.ts'
import type { User } from '../model/objects.ts'
import type { Store } from '../store/store.ts'
import type { BearerAnswer } from './methods/method.ts'
import { readClaims } from './methods/oidc/signed.ts'
import type { MethodRegistry } from './methods/registry.ts'
import { flawOfStanding } from './standing.ts'

const MAX_DETAIL = 300
const ALL = { limit: -1, offset: 0 }

export interface BearersOptions {
  store: Pick<Store, 'authDomains' | 'externalAuths' | 'persons' | 'secondFactors'>
  registry: Pick<MethodRegistry, 'of'>
  /** Milliseconds since the epoch. */
  now: () => number
}

export type BearerOutcome =
  | {
      result: 'accepted'
      user: User
      /** Name of the external authentication. */
      by: string
      /** When the token ends, in milliseconds since the epoch. */
      ends: number
      /** Profiles of the token's scopes, whose rights are the most it gives; absent if scopes limit nothing. */
      profiles?: string[]
      /** Set if the issuer has asked for a second factor. */
      hasFactor?: true
    }
  /** Why, for administrators. */
  | { result: 'rejected'; reason: string }
  | { result: 'unavailable'; reason: string }

interface Taker {
  domain: AuthDomain
  auth: Extract<ExternalAuth, { type: 'OIDC' }>
}
type Accepted = Extract<BearerAnswer, { result: 'accepted' }>

export class Bearers {
  readonly #options: BearersOptions

  constructor(options: BearersOptions) {
    this.#options = options
  }

  /** Judges a token. `source`: the client's address. */
  async judge(token: string, source: string): Promise<BearerOutcome> {
    const all = await this.#takers()
    let takers: Taker[]
    try {
      const { iss: issuer } = readClaims(token)
      takers = all.filter(({ auth }) => auth.options.issuer === issuer)
      if (takers.length === 0) return refused(`no domain has the issuer ${JSON.stringify(issuer)}`)
    } catch (error) {
      takers = all.filter(({ auth }) => auth.options.tokenType === 'opaque')
      if (takers.length === 0) return refused((error as Error).message)
      // A token that is shown to another issuer than its own could be used by that one.
      if (takers.length > 1) return refused('several issuers of opaque tokens: which one to ask is not known')
    }
    const answers = await Promise.all(
      takers.map(async (taker) => ({ taker, answer: await this.#ask(taker, token, source) })),
    )
    const accepted = answers.flatMap(({ taker, answer }) =>
      answer.result === 'accepted' ? [{ taker, answer }] : [],
    )
    const [only, another] = accepted
    if (another) {
      const names = accepted.map(({ taker }) => taker.domain.domainName).join(', ')
      return refused(`several domains take it: ${names}; bind each by claims that no other one has`)
    }
    if (only) return await this.#asUser(only.taker, only.answer, source)
    const reason = answers
      .map(
        ({ taker, answer }) => `${taker.auth.authenticationName}: ${'reason' in answer ? answer.reason : ''}`,
      )
      .join('; ')
    const isAway = answers.some(({ answer }) => answer.result === 'unavailable')
    return { result: isAway ? 'unavailable' : 'rejected', reason: soundText(reason) }
  }

  async #ask({ domain, auth }: Taker, token: string, source: string): Promise<BearerAnswer> {
    const method = await this.#options.registry.of(auth, domain.attributes)
    return await method.bear!(token, source)
  }

  async #asUser(
    { domain, auth }: Taker,
    { ends, person, scopes, isMultiFactor }: Accepted,
    source: string,
  ): Promise<BearerOutcome> {
    const { store, now } = this.#options
    const user = await store.persons.signedIn(domain.id, person)
    if (!user)
      return refused(
        `${person.userName}: no mapping of ${domain.domainName} matches, or the name is taken or none`,
      )
    const flaw = flawOfStanding(user, source, now())
    if (flaw) return refused(`${flaw} user`)
    const isEnrolled = (await store.secondFactors.find(user.id))?.enrolled !== undefined
    if (!isMultiFactor && (isEnrolled || (await store.secondFactors.policyOf(user))))
      return refused(`${user.userName} needs a second factor, and amr of the token does not say mfa`)
    const profiles = profilesOf(auth.options.scopes, scopes)
    return {
      result: 'accepted',
      user,
      by: auth.authenticationName,
      ends,
      ...(profiles && { profiles }),
      ...(isMultiFactor && { hasFactor: true }),
    }
  }

  async #takers(): Promise<Taker[]> {
    const { authDomains, externalAuths } = this.#options.store
    const [domains, auths] = await Promise.all([authDomains.list(ALL), externalAuths.list(ALL)])
    return domains.items.flatMap((domain) =>
      auths.items.flatMap((auth) =>
        auth.type === 'OIDC' && auth.options.audience !== '' && domain.externalAuthIds.includes(auth.id)
          ? [{ domain, auth }]
          : [],
      ),
    )
  }
}

/** Returns the profiles of the scopes; undefined if none is set for any scope. `mapped`: each `SCOPE=PROFILE`. */
function profilesOf(mapped: readonly string[], scopes: readonly string[]): string[] | undefined {
  if (mapped.length === 0) return undefined
  return mapped.flatMap((one) => {
    const at = one.lastIndexOf('=')
    return scopes.includes(one.slice(0, at)) ? [one.slice(at + 1)] : []
  })
}

const refused = (reason: string): BearerOutcome => ({ result: 'rejected', reason: soundText(reason) })

const soundText = (text: string): string => text.replaceAll(/\p{Cc}/gu, ' ').slice(0, MAX_DETAIL)
