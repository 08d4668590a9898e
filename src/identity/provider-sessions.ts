/** Sessions of persons at providers of federated sign-in, with their tokens, which are sealed for their session. */
import type { Id } from '../model/objects.ts'
import { Secret } from '../model/secret.ts'
import type { ProviderSession, Store } from '../store/store.ts'
import type { HashSeal } from './hashes.ts'

/** Sessions of one person at providers; a further one ends the oldest. */
export const MAX_OF_USER = 20
export const MAX_SESSIONS = 10_000

/** Tokens that a provider has given for its session. */
export interface ProviderTokens {
  /** Shown to the provider at the sign-out. */
  idToken?: string
  refreshToken?: string
}

export interface BegunSession {
  userId: Id
  externalAuthId: Id
  subject: string
  /** The provider's id of the session, if it has said one. */
  sid?: string
  /** Milliseconds since the epoch. */
  ends: number
  tokens?: ProviderTokens
}

export interface ProviderSessionsOptions {
  store: Pick<Store, 'providerSessions'>
  vault: Pick<HashSeal, 'seal' | 'open'>
  /** Milliseconds since the epoch. */
  now: () => number
}

const placeOf = (id: Id) => ({ table: 'provider_sessions', id, field: 'tokens' })

export class ProviderSessions {
  readonly #options: ProviderSessionsOptions

  constructor(options: ProviderSessionsOptions) {
    this.#options = options
  }

  /** Returns the id of a new session. */
  async begin({ tokens, sid = '', ...session }: BegunSession): Promise<Id> {
    const { store, now } = this.#options
    const limits = { ofUser: MAX_OF_USER, all: MAX_SESSIONS }
    const seal = tokens && ((id: Id) => this.#sealed(id, tokens))
    return await store.providerSessions.begin({ ...session, sid, begin: now() }, seal, limits)
  }

  /** Notes that the provider has confirmed the session. Returns false if it has ended since. */
  async confirmed(id: Id, tokens: ProviderTokens): Promise<boolean> {
    const { store, now } = this.#options
    return await store.providerSessions.checked(id, { time: now(), sealed: this.#sealed(id, tokens) })
  }

  /** @throws UnsealError if they were altered, or belong to another session */
  tokensOf({ id, sealed }: Pick<ProviderSession, 'id' | 'sealed'>): ProviderTokens {
    if (!sealed) return {}
    const secret = this.#options.vault.open(placeOf(id), sealed)
    try {
      return JSON.parse(secret.revealText()) as ProviderTokens
    } finally {
      secret.wipe()
    }
  }

  /**
   * Ends the sessions that the provider has ended, by its subject, its sid, or both. `endsAll`: all that rests on them, not
   * only sign-ins by cookie. Returns the users.
   */
  async loggedOut(
    externalAuthId: Id,
    named: { subject?: string; sid?: string },
    endsAll: boolean,
  ): Promise<Id[]> {
    const { providerSessions } = this.#options.store
    const sessions = await providerSessions.named(externalAuthId, named)
    for (const { id } of sessions) {
      if (endsAll) await providerSessions.remove(id)
      else await providerSessions.signOut(id)
    }
    return [...new Set(sessions.map(({ userId }) => userId))]
  }

  #sealed(id: Id, tokens: ProviderTokens): Uint8Array {
    const secret = Secret.of(JSON.stringify(tokens))
    try {
      return this.#options.vault.seal(placeOf(id), secret)
    } finally {
      secret.wipe()
    }
  }
}
