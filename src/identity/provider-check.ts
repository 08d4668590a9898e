/**
 * Asks providers about their sessions that something rests on here, by refresh tokens: a session that the provider does not
 * renew ends, and groups follow. Sessions that nothing rests on are forgotten.
 */
import type { Id } from '../model/objects.ts'
import type { ProviderSession, Store } from '../store/store.ts'
import { OidcMethod } from './methods/oidc/method.ts'
import type { MethodRegistry } from './methods/registry.ts'
import type { ProviderSessions } from './provider-sessions.ts'

/** Sessions asked about side by side. */
const TOGETHER = 4
/** Milliseconds for which a session is kept whose sign-in is not complete yet. */
const GRACE_MS = 900_000
/** Milliseconds for which a session counts after the provider has renewed it. */
export const RENEWED_MS = 24 * 3_600_000

export interface ProviderCheckOptions {
  store: Pick<Store, 'authDomains' | 'externalAuths' | 'persons' | 'providerSessions' | 'users'>
  registry: Pick<MethodRegistry, 'of'>
  sessions: Pick<ProviderSessions, 'confirmed' | 'tokensOf'>
  /** Returns the users that anything runs for, besides sign-ins by cookie. */
  users: () => Id[]
  /** Milliseconds since the epoch. */
  now: () => number
  /** Reports a person that the provider does not let in any more. */
  onLost: (userName: string, reason: string) => void
}

export class ProviderCheck {
  readonly #options: ProviderCheckOptions
  #current: Promise<void> | undefined

  constructor(options: ProviderCheckOptions) {
    this.#options = options
  }

  /** Looks at all; simultaneous calls share one run. Rejects with the first error, after all the others were looked at. */
  run(): Promise<void> {
    this.#current ??= this.#all().finally(() => {
      this.#current = undefined
    })
    return this.#current
  }

  async #all(): Promise<void> {
    const { store, users } = this.#options
    const waiting = await store.providerSessions.list()
    const running = new Set(users())
    const away = new Set<Id>()
    const failures: unknown[] = []
    const work = async () => {
      for (let session = waiting.shift(); session; session = waiting.shift())
        await this.#check(session, running, away).catch((error: unknown) => failures.push(error))
    }
    await Promise.all(Array.from({ length: TOGETHER }, work))
    if (failures.length > 0) throw failures[0]
  }

  /** `away`: providers that did not answer in this run. */
  async #check(session: ProviderSession, running: ReadonlySet<Id>, away: Set<Id>): Promise<void> {
    const { now, store } = this.#options
    const { begin, ends, externalAuthId, id, userId } = session
    const isUsed =
      running.has(userId) || now() < begin + GRACE_MS || (await store.providerSessions.isSignedIn(id))
    if (ends <= now() || !isUsed) await store.providerSessions.remove(id)
    else if (!away.has(externalAuthId) && !(await this.#renew(session))) away.add(externalAuthId)
  }

  /** Returns false if the provider is away. */
  async #renew(session: ProviderSession): Promise<boolean> {
    const { now, registry, sessions, store } = this.#options
    const { id, externalAuthId, subject, userId } = session
    const { refreshToken, ...tokens } = sessions.tokensOf(session)
    const user = await store.users.find(userId)
    const auth = await store.externalAuths.find(externalAuthId)
    if (refreshToken === undefined || user?.authDomainId === undefined || !auth) return true
    const domain = await store.authDomains.find(user.authDomainId)
    if (!domain) return true
    const method = await registry.of(auth, domain.attributes)
    const party = method instanceof OidcMethod ? method.relyingParty : undefined
    if (!party)
      return await this.#lost(session, user.userName, 'the bastion is no client of the provider any more')
    const renewed = await party.renew({ ...tokens, refreshToken }, subject)
    if (renewed.result === 'ended') return await this.#lost(session, user.userName, renewed.reason)
    const ends = renewed.result === 'renewed' ? now() + RENEWED_MS : undefined
    // A refresh token that was replaced is worth nothing.
    if (renewed.tokens) await sessions.confirmed(id, renewed.tokens, ends)
    if (renewed.result === 'unavailable') return false
    if (!renewed.person) return true
    const found = await store.persons.signedIn(domain.id, renewed.person)
    if (found?.id === userId) return true
    await store.persons.suspend(userId)
    return await this.#lost(session, user.userName, 'unmapped')
  }

  async #lost({ id }: ProviderSession, userName: string, reason: string): Promise<true> {
    const { onLost, store } = this.#options
    await store.providerSessions.remove(id)
    onLost(userName, reason)
    return true
  }
}
