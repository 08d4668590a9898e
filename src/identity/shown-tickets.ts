/** Sign-ins at the API by tickets of Kerberos: the name in the ticket is that of the person. */
import { realmOfNegotiate } from '../kerberos/negotiate.ts'
import type { Identities } from './chain.ts'
import { attemptOf, type External } from './external.ts'
import type { FederatedOutcome } from './federated.ts'
import { personAt } from './places.ts'
import type { TicketTakers } from './ticket-takers.ts'

/** Kind of the services whose tickets the API takes. */
const SERVICE = 'HTTP'
const METHOD = 'negotiate'

export interface ShownTicketsOptions {
  takers: TicketTakers
  external: Pick<External, 'byPerson'>
  identities: Pick<Identities, 'byShown'>
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
    return (await this.#options.takers.all()).length > 0
  }

  /** Judges a token of SPNEGO. `owner`: see `SignIn`. */
  async negotiate(token: Uint8Array, who: { source: string; owner: string }): Promise<ShownOutcome> {
    const { external, identities, takers } = this.#options
    const how = { service: SERVICE, form: 'spnego', realmOf: realmOfNegotiate } as const
    const taken = await takers.judge(token, how, who)
    if ('outcome' in taken) return taken
    const { domain, auth } = taken.taker
    const { userName, answer, close } = taken.shown
    close()
    const place = personAt(domain, userName)
    const { name } = place
    const attempt = attemptOf(userName, who.source)
    const request = { ...who, user: name, login: name, proof: { method: METHOD } } as const
    const outcome = await identities.byShown(request, place, () =>
      // The ticket says no groups.
      external.byPerson(domain, attempt, { userName, groups: [] }, auth.authenticationName),
    )
    return { outcome, name, ...(outcome.result === 'accepted' && answer && { answer }) }
  }
}
