/** Looks at the persons of domains that something runs for: one that is gone or disabled at the servers loses it. */
import type { AuthDomain } from '../model/external-auths.ts'
import type { Id, User } from '../model/objects.ts'
import type { Store } from '../store/store.ts'
import type { PersonLook } from './methods/method.ts'
import type { MethodRegistry } from './methods/registry.ts'

/** Persons looked at side by side. */
const TOGETHER = 4
/** Milliseconds for all servers, for one person. */
const MAX_MS = 120_000

export interface PersonCheckOptions {
  store: Pick<Store, 'users' | 'authDomains' | 'externalAuths' | 'persons' | 'signIns'>
  registry: Pick<MethodRegistry, 'of'>
  /** Returns the users that anything runs for, besides sign-ins by cookie. */
  users: () => Id[]
  /** Reports a person that the servers do not let in any more. */
  onLost: (userName: string, reason: string) => void
}

export class PersonCheck {
  readonly #options: PersonCheckOptions
  #current: Promise<void> | undefined

  constructor(options: PersonCheckOptions) {
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
    const waiting = [...new Set([...users(), ...(await store.signIns.persons())])]
    const failures: unknown[] = []
    const work = async () => {
      for (let id = waiting.pop(); id !== undefined; id = waiting.pop())
        await this.#check(id).catch((error: unknown) => failures.push(error))
    }
    await Promise.all(Array.from({ length: TOGETHER }, work))
    if (failures.length > 0) throw failures[0]
  }

  async #check(id: Id): Promise<void> {
    const { store, onLost } = this.#options
    const user = await store.users.find(id)
    if (user?.authDomainId === undefined || user.isDisabled) return
    const domain = await store.authDomains.find(user.authDomainId)
    const look = domain && (await this.#look(domain, user))
    if (!look) return
    // Groups that the person has lost are lost at once, by the log of changes.
    const found = look.result === 'present' ? await store.persons.signedIn(domain.id, look.person) : undefined
    if (found?.id === id) return
    // Another person may have the name now.
    await store.persons.suspend(id)
    onLost(user.userName, look.result === 'absent' ? look.reason : 'unmapped')
  }

  /** Returns what the first server says that can judge, or undefined if none can. */
  async #look(
    domain: AuthDomain,
    { userName }: User,
  ): Promise<Exclude<PersonLook, { result: 'unavailable' }> | undefined> {
    const { store, registry } = this.#options
    const name = userName.slice(0, userName.lastIndexOf('@'))
    for (const authId of domain.externalAuthIds) {
      const auth = await store.externalAuths.find(authId)
      const method = auth && (await registry.of(auth, domain.attributes))
      const look = await method?.look?.(name, AbortSignal.timeout(MAX_MS))
      if (look && look.result !== 'unavailable') return look
    }
    return undefined
  }
}
