/**
 * The end that sign-ins at providers have in common, once a provider has proved a person of a domain: mappings, second
 * factors, the lock-out and events are those of every sign-in.
 */
import type { AuthDomain, ExternalAuth } from '../model/external-auths.ts'
import type { Identities } from './chain.ts'
import { attemptOf, type External } from './external.ts'
import type { Person } from './methods/method.ts'
import { isSound, personAt } from './places.ts'
import type { BegunSession, ProviderSessions } from './provider-sessions.ts'
import type { Outcome, Proved } from './sign-in.ts'
import { andThen, type Step } from './steps.ts'

const MAX_DETAIL = 300

/** The client of a sign-in. `owner`: see `SignIn`. */
export interface Client {
  source: string
  owner: string
}

export interface FederatedOutcome {
  outcome: Outcome
  /** Name of the person, if one was proved. */
  name?: string
  /** Why none was proved, for administrators. */
  detail?: string
}

/** A person that a provider has proved. */
export interface ProvedPerson {
  /** As it was when the provider was asked. */
  domain: AuthDomain
  auth: Pick<ExternalAuth, 'id' | 'authenticationName'>
  /** With the provider's stable id. */
  person: Person
  session: Omit<BegunSession, 'userId' | 'externalAuthId'>
}

export interface FederatedOptions {
  external: Pick<External, 'byPerson'>
  identities: Pick<Identities, 'byShown' | 'byTicket'>
  sessions: Pick<ProviderSessions, 'begin'>
}

type Judging = FederatedOptions['identities']

export class Federated {
  readonly #options: FederatedOptions

  constructor(options: FederatedOptions) {
    this.#options = options
  }

  /** Signs in the person that a provider has proved. */
  async signIn({ domain, auth, person, session }: ProvedPerson, client: Client): Promise<FederatedOutcome> {
    const { external, identities, sessions } = this.#options
    if (!isSound(person.userName))
      return await refused(identities, client.source, `expected a plain name, got "${person.userName}"`)
    const { authenticationName: by } = auth
    const place = personAt(domain, person.userName)
    const { name } = place
    const request = { ...client, user: name, login: name, proof: { method: 'provider' } } as const
    const outcome = await identities.byShown(request, place, async () => {
      const attempt = attemptOf(person.userName, client.source)
      const step = await external.byPerson(domain, attempt, person, by)
      return await andThen(step, async (proved): Promise<Step<Proved>> => {
        const begun = { ...session, userId: proved.user.id, externalAuthId: auth.id }
        return { result: 'accepted', value: { ...proved, providerSession: await sessions.begin(begun) } }
      })
    })
    return { outcome, name }
  }

  /** Ends a sign-in whose provider has proved no person. Counts as a failure for the address. */
  async refused({ source }: Client, detail: string): Promise<FederatedOutcome> {
    return await refused(this.#options.identities, source, detail)
  }

  /** Ends a sign-in that could not be judged, which counts as no failure. */
  async unjudged(
    at: Pick<ProvedPerson, 'auth' | 'domain'>,
    client: Client,
    detail: string,
  ): Promise<FederatedOutcome> {
    return await unjudged(this.#options.identities, at, client, detail)
  }
}

/** Ends a sign-in whose proof was not accepted. It cannot be guessed, but it counts for the address like one that can. */
export async function refused(
  identities: Pick<Judging, 'byTicket'>,
  source: string,
  detail: string,
): Promise<FederatedOutcome> {
  const outcome = await identities.byTicket({ user: '', source }, async () => undefined)
  return { outcome, detail: sound(detail) }
}

/** Ends a sign-in of a person whose name is not known, as the server could not judge. */
export async function unjudged(
  identities: Pick<Judging, 'byShown'>,
  { domain, auth }: { domain: AuthDomain; auth: Pick<ExternalAuth, 'authenticationName'> },
  client: Client,
  detail: string,
): Promise<FederatedOutcome> {
  const request = { ...client, user: '', login: '', proof: { method: 'provider' } } as const
  const reason = sound(detail)
  const outcome = await identities.byShown(request, { domain, userName: '', name: '' }, async () => ({
    result: 'unavailable',
    server: auth.authenticationName,
    reason,
  }))
  return { outcome, detail: reason }
}

const sound = (text: string): string => text.replaceAll(/\p{Cc}/gu, ' ').slice(0, MAX_DETAIL)
