/**
 * Sign-ins over SSH by tickets of Kerberos (RFC 4462 3): a token begins a context, and the client's signature under it
 * ends it. The signature covers the session identifier, so that it is worth nothing on another connection.
 */
import { realmOfToken } from '../kerberos/acceptor.ts'
import { nameKey } from '../model/names.ts'
import type { Store } from '../store/store.ts'
import type { Identities } from './chain.ts'
import { type Dialogue, Dialogues } from './dialogues.ts'
import { attemptOf, type External } from './external.ts'
import type { Client, FederatedOutcome } from './federated.ts'
import { ForwardedTicket } from './forwarded-ticket.ts'
import type { ShownTicket } from './methods/method.ts'
import type { MethodRegistry } from './methods/registry.ts'
import { type Place, personAt, placeOf } from './places.ts'
import type { Begun, Outcome } from './sign-in.ts'
import { isSignedGssapi } from './signed-gssapi.ts'
import type { Taker, TicketTakers } from './ticket-takers.ts'

/** Kind of the services whose tickets are taken. */
const SERVICE = 'host'
const METHOD = 'gssapi-with-mic'
/** Milliseconds for which it is remembered whether tickets are taken: every client asks before it signs in. */
const KNOWN_MS = 1000

/** A client signs at once, and automation opens many connections of one person at a time. */
const LIMITS = { ms: 60_000, ofName: 128, ofNetwork: 512, inAll: 2000 } as const

interface Context extends Dialogue {
  taker: Taker
  shown: ShownTicket
  forwarded?: ForwardedTicket
}

export interface SshTicketsOptions {
  store: Pick<Store, 'users' | 'authDomains' | 'externalAuths'>
  registry: Pick<MethodRegistry, 'of'>
  takers: Pick<TicketTakers, 'judge' | 'take'>
  external: Pick<External, 'byPerson'>
  identities: Pick<Identities, 'byShown'>
  /** Milliseconds since the epoch. */
  now: () => number
}

export type BegunContext =
  /** `answer` is for the client. */
  { context: string; answer?: Uint8Array } | FederatedOutcome

export class SshTickets {
  readonly #options: SshTicketsOptions
  readonly #contexts: Dialogues<Context>
  #known: { areTaken: Promise<boolean>; since: number } | undefined

  constructor(options: SshTicketsOptions) {
    this.#options = options
    this.#contexts = new Dialogues(options.now, (context) => closeAll(context), LIMITS)
  }

  /** Whether a domain takes tickets: has a keytab with a key for `host/…`. */
  async areTaken(): Promise<boolean> {
    const { now, takers } = this.#options
    const age = now() - (this.#known?.since ?? Number.NEGATIVE_INFINITY)
    if (!this.#known || age < 0 || KNOWN_MS <= age)
      this.#known = { areTaken: takers.take(SERVICE), since: now() }
    return await this.#known.areTaken
  }

  /** Judges a client's token. Says nothing about the name in the login string, whatever it is. */
  async begin(token: Uint8Array, client: Client): Promise<BegunContext> {
    const how = { service: SERVICE, form: 'bare', realmOf: realmOfToken } as const
    const taken = await this.#options.takers.judge(token, how, client)
    if ('outcome' in taken) return taken
    const { taker, shown } = taken
    const { name } = personAt(taker.domain, shown.userName)
    const forwarded = this.#forwarded(taker, shown)
    const context = this.#contexts.open({
      ...client,
      name: nameKey(name),
      taker,
      shown,
      ...(forwarded && { forwarded }),
    })
    return { context, ...(shown.answer && { answer: shown.answer }) }
  }

  /** Judges the signature under a context: once, and for its owner only. `user`: the name in the login string. */
  async finish(
    request: Omit<Begun, 'proof'> & { owner: string },
    { context, data, mic }: { context: string; data: Uint8Array; mic: Uint8Array },
  ): Promise<{ outcome: Outcome; begun?: Begun }> {
    const { external, identities, store } = this.#options
    const begun = this.#contexts.take(context, request.owner)
    if (!begun) return { outcome: { result: 'rejected', reason: 'no_challenge', locks: false } }
    const { taker, shown, forwarded } = begun
    let isKept = false
    try {
      const { userName } = shown
      const { domain, auth } = taker
      const person = personAt(domain, userName)
      const isSigned = isSignedGssapi(data, request.login) && shown.isSigned(data, mic)
      const isNamed = isSame(await placeOf(store, request.user), person)
      const attempt = attemptOf(userName, request.source)
      const signIn: Begun = { ...request, proof: { method: METHOD, ...(forwarded && { forwarded }) } }
      const outcome = await identities.byShown(signIn, person, async () => {
        if (!isSigned) return { result: 'rejected', reason: 'bad_signature' }
        if (!isNamed) return { result: 'rejected', reason: 'other_name' }
        // The ticket says no groups.
        return await external.byPerson(domain, attempt, { userName, groups: [] }, auth.authenticationName)
      })
      isKept = outcome.result === 'accepted' || outcome.result === 'challenge'
      return { outcome, begun: signIn }
    } finally {
      shown.close()
      if (!isKept) forwarded?.close()
    }
  }

  /** Ends a context that will not be used. */
  end(context: string): void {
    this.#contexts.end(context)
  }

  #forwarded({ auth, domain }: Taker, { delegated: ticket }: ShownTicket): ForwardedTicket | undefined {
    const { now, registry, store } = this.#options
    if (!ticket) return undefined
    const method = async () => {
      // It may have been changed since the sign-in.
      const known = await store.externalAuths.find(auth.id)
      if (!known) throw new Error('there is no such external authentication')
      return await registry.of(known, domain.attributes)
    }
    return new ForwardedTicket({ ticket, method, now })
  }
}

function closeAll({ shown, forwarded }: Context): void {
  shown.close()
  forwarded?.close()
}

/**
 * Whether the place that a login string leads to is the person of a ticket. A bare name that is no local user's is the
 * person's where no default domain would judge it: the realm of the ticket says the domain.
 */
function isSame({ local, domain, userName }: Place, person: Place): boolean {
  if (local || (domain && domain.id !== person.domain!.id)) return false
  return nameKey(userName) === nameKey(person.userName)
}
