/** Domains whose servers take tickets of Kerberos: the realm of a ticket leads to one of them. */
import { TicketRefusal } from '../kerberos/acceptor.ts'
import type { AuthDomain, ExternalAuth } from '../model/external-auths.ts'
import type { Store } from '../store/store.ts'
import type { Identities } from './chain.ts'
import { type Client, type FederatedOutcome, refused, unjudged } from './federated.ts'
import { type ShownTicket, type SignInMethod, type TicketForm, UnjudgedError } from './methods/method.ts'
import type { MethodRegistry } from './methods/registry.ts'
import { isSound } from './places.ts'

const ALL = { limit: -1, offset: 0 }

export interface Taker {
  domain: AuthDomain
  auth: Extract<ExternalAuth, { type: 'KERBEROS' }>
}

export type Taken = { taker: Taker; shown: ShownTicket } | FederatedOutcome

export interface TicketTakersOptions {
  store: Pick<Store, 'authDomains' | 'externalAuths'>
  registry: Pick<MethodRegistry, 'of'>
  identities: Pick<Identities, 'byShown' | 'byTicket'>
}

export class TicketTakers {
  readonly #options: TicketTakersOptions

  constructor(options: TicketTakersOptions) {
    this.#options = options
  }

  async all(): Promise<Taker[]> {
    const { authDomains, externalAuths } = this.#options.store
    const [domains, auths] = await Promise.all([authDomains.list(ALL), externalAuths.list(ALL)])
    return domains.items.flatMap((domain) =>
      auths.items.flatMap((auth) =>
        auth.type === 'KERBEROS' && domain.externalAuthIds.includes(auth.id) ? [{ domain, auth }] : [],
      ),
    )
  }

  /** Whether any keytab has a key for tickets of this kind of service. */
  async take(service: string): Promise<boolean> {
    for (const taker of await this.all()) {
      const method = await this.#methodOf(taker).catch(() => undefined)
      if (method?.takes?.(service)) return true
    }
    return false
  }

  /** Judges a token with a ticket for this kind of service; `realmOf` reads its realm. A refusal counts for the address. */
  async judge(
    token: Uint8Array,
    { service, form, realmOf }: { service: string; form: TicketForm; realmOf: (token: Uint8Array) => string },
    client: Client,
  ): Promise<Taken> {
    const takers = await this.all()
    let taker: Taker | undefined
    try {
      taker = takerOf(takers, realmOf(token))
      return { taker, shown: await this.#shownTo(taker, token, service, form) }
    } catch (error) {
      const { message } = error as Error
      return taker && error instanceof UnjudgedError
        ? await unjudged(this.#options.identities, taker, client, message)
        : await refused(this.#options.identities, client.source, message)
    }
  }

  /** @throws UnjudgedError if the fault is ours, else Error */
  async #shownTo(taker: Taker, token: Uint8Array, service: string, form: TicketForm): Promise<ShownTicket> {
    const method = await this.#methodOf(taker).catch((error: Error) => {
      throw new UnjudgedError(error.message)
    })
    const shown = method.accept!(token, service, form)
    if (isSound(shown.userName)) return shown
    shown.close()
    throw new TicketRefusal('a name without blanks around it was expected')
  }

  #methodOf({ auth, domain }: Taker): Promise<SignInMethod> {
    return this.#options.registry.of(auth, domain.attributes)
  }
}

/** @throws Error unless one server takes tickets of the realm, for one domain */
function takerOf(takers: readonly Taker[], realm: string): Taker {
  const [taker, ...more] = takers.filter(({ auth }) => auth.options.realm === realm)
  if (!taker) throw new TicketRefusal(`no domain has a server of the realm ${realm}`)
  if (more.length > 0)
    throw new TicketRefusal(`${more.length + 1} servers of domains have the realm ${realm}: one is expected`)
  return taker
}
