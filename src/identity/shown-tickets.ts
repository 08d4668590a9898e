/**
 * Sign-ins by tickets of Kerberos that clients show: the realm of the ticket leads to the one domain with a server of that
 * realm, and the name in the ticket to its person.
 */
import { realmOf } from '../kerberos/negotiate.ts'
import type { AuthDomain, ExternalAuth } from '../model/external-auths.ts'
import type { Store } from '../store/store.ts'
import type { Identities } from './chain.ts'
import { attemptOf, type External } from './external.ts'
import { type FederatedOutcome, refused, unjudged } from './federated.ts'
import { type ShownTicket, UnjudgedError } from './methods/method.ts'
import type { MethodRegistry } from './methods/registry.ts'
import { isSound, personAt } from './places.ts'

/** Kind of the services whose tickets the API takes. */
const SERVICE = 'HTTP'
const ALL = { limit: -1, offset: 0 }

export interface ShownTicketsOptions {
  store: Pick<Store, 'authDomains' | 'externalAuths'>
  registry: Pick<MethodRegistry, 'of'>
  external: Pick<External, 'byPerson'>
  identities: Pick<Identities, 'byShown' | 'byTicket'>
}

interface Taker {
  domain: AuthDomain
  auth: Extract<ExternalAuth, { type: 'KERBEROS' }>
}

export interface ShownOutcome extends FederatedOutcome {
  /** Token for the client, which proves us; only for one who is signed in. */
  answer?: Uint8Array
}

export class ShownTickets {
  readonly #options: ShownTicketsOptions

  constructor(options: ShownTicketsOptions) {
    this.#options = options
  }

  /** Whether any domain takes tickets. */
  async areTaken(): Promise<boolean> {
    return (await this.#takers()).length > 0
  }

  /** Judges a token of SPNEGO. `owner`: see `SignIn`. */
  async negotiate(token: Uint8Array, who: { source: string; owner: string }): Promise<ShownOutcome> {
    const { external, identities } = this.#options
    const { source } = who
    const takers = await this.#takers()
    let taker: Taker | undefined
    let shown: ShownTicket
    try {
      taker = takerOf(takers, realmOf(token))
      shown = await this.#shownTo(taker, token)
    } catch (error) {
      const { message } = error as Error
      return taker && error instanceof UnjudgedError
        ? await unjudged(identities, taker, who, message)
        : await refused(identities, source, message)
    }
    const { domain, auth } = taker
    const { userName, answer } = shown
    const place = personAt(domain, userName)
    const { name } = place
    const attempt = attemptOf(userName, source)
    const request = { ...who, user: name, login: name, proof: { method: 'negotiate' } } as const
    const outcome = await identities.byShown(request, place, () =>
      // The ticket says no groups.
      external.byPerson(domain, attempt, { userName, groups: [] }, auth.authenticationName),
    )
    return { outcome, name, ...(outcome.result === 'accepted' && { answer }) }
  }

  /** @throws UnjudgedError if the fault is ours, else Error */
  async #shownTo({ auth, domain }: Taker, token: Uint8Array): Promise<ShownTicket> {
    const method = await this.#options.registry.of(auth, domain.attributes).catch((error: Error) => {
      throw new UnjudgedError(error.message)
    })
    const shown = method.accept!(token, SERVICE)
    if (!isSound(shown.userName)) throw new Error('expected a name without blanks around it')
    return shown
  }

  async #takers(): Promise<Taker[]> {
    const { authDomains, externalAuths } = this.#options.store
    const [domains, auths] = await Promise.all([authDomains.list(ALL), externalAuths.list(ALL)])
    return domains.items.flatMap((domain) =>
      auths.items.flatMap((auth) =>
        auth.type === 'KERBEROS' && domain.externalAuthIds.includes(auth.id) ? [{ domain, auth }] : [],
      ),
    )
  }
}

/** @throws Error unless one server takes tickets of the realm, for one domain */
function takerOf(takers: readonly Taker[], realm: string): Taker {
  const [taker, ...more] = takers.filter(({ auth }) => auth.options.realm === realm)
  if (!taker) throw new Error(`no domain has a server of the realm ${realm}`)
  if (more.length > 0)
    throw new Error(`${more.length + 1} servers of domains have the realm ${realm}: one is expected`)
  return taker
}
