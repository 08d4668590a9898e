/** Proof of a password by servers: those of an authentication domain, or those that a local user names. */

import { Buffer } from 'node:buffer'
import { randomBytes, randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { AuthDomain, ExternalAuth, ExternalAuthType } from '../model/external-auths.ts'
import type { AccountingClass, Id, User } from '../model/objects.ts'
import { Secret } from '../model/secret.ts'
import type { Store } from '../store/store.ts'
import { Looks } from './looks.ts'
import type { MethodAnswer, MethodAttempt, Person, SignInMethod } from './methods/method.ts'
import type { MethodRegistry } from './methods/registry.ts'
import { Turns } from './methods/turns.ts'
import type { Offline } from './offline.ts'
import { personAt, serversOf } from './places.ts'
import { type Question, questionAfter } from './questions.ts'
import type { Proved } from './sign-in.ts'
import { andThen, type Round, type Step } from './steps.ts'

/** Milliseconds for all the servers of one method; a client has its own, shorter time for the whole sign-in. */
const MAX_MS = 120_000
/** Number of durations that are kept, and the longest that is kept of any, in milliseconds. */
const MAX_TIMES = 32
const MAX_TIME_MS = 2000

export interface ExternalOptions {
  store: Pick<Store, 'users' | 'authDomains' | 'externalAuths' | 'persons'>
  registry: Pick<MethodRegistry, 'of'>
  /** Earlier proofs, for while servers are away; absent: none count. */
  offline?: Offline
}

type DomainOfMethod = Pick<AuthDomain, 'attributes'>

interface KnownMethod {
  id: Id
  type: ExternalAuthType
  /** Name of the external authentication. */
  name: string
  auth: ExternalAuth
  method: SignInMethod
  turns: Turns
}

/** A person as one server has accepted them. */
interface Judged {
  person: Person
  by: Judge
  /** The server, if it has judged the password without further rounds, and the hash to be kept of it. */
  kept?: { auth: ExternalAuth; hash: string }
  /** The user whom an earlier proof stands for, since no server could judge. */
  earlier?: User
}

interface Judge {
  /** Name of the external authentication. */
  name: string
  classes?: AccountingClass
}

/** No server of the domain has judged. */
class UnavailableError extends Error {
  /** Names of the servers, and why each has not. */
  readonly servers: readonly { server: string; reason: string }[]

  constructor(servers: readonly { server: string; reason: string }[]) {
    super('no server has judged')
    this.servers = servers
  }
}

export class External {
  readonly #options: ExternalOptions
  /** Durations of the last rejections by servers, in milliseconds. */
  readonly #times: number[] = []
  readonly #looks = new Looks(() => performance.now())
  /** Milliseconds that the last look took which found a person. */
  #lookMs = 0
  /** Called with each answer of the servers of a method, and the milliseconds that it took. */
  onJudged: ((type: ExternalAuthType, result: MethodAnswer['result'], time: number) => void) | undefined
  /** Of each external authentication. */
  readonly #turns = new Map<Id, Turns>()

  constructor(options: ExternalOptions) {
    this.#options = options
  }

  get store(): ExternalOptions['store'] {
    return this.#options.store
  }

  /** Proves a person of a domain: by its first server that can judge, then by each of its second factors. */
  async byDomain(domain: AuthDomain, attempt: MethodAttempt, password: Secret): Promise<Step<Proved>> {
    const name = personAt(domain, attempt.userName).name
    const find = async () => {
      const user = await this.#options.store.users.find(name)
      return user?.authDomainId === domain.id ? user : undefined
    }
    const first = await this.#byFirst(domain.externalAuthIds, domain, attempt, password, { name, find })
    return await andThen(first, (judged) => this.#afterFirst(domain, attempt, judged))
  }

  /** Goes on after the domain's server `by` has proved the person without a password. */
  async byPerson(
    domain: AuthDomain,
    attempt: MethodAttempt,
    person: Person,
    by: string,
  ): Promise<Step<Proved>> {
    return await this.#afterFirst(domain, attempt, { person, by: { name: by } })
  }

  async #afterFirst(
    domain: AuthDomain,
    attempt: MethodAttempt,
    { person, by, kept, earlier }: Judged,
  ): Promise<Step<Proved>> {
    const rest = await this.#bySecond(domain, domain.secondaryAuthIds, attempt, [by])
    if (earlier) return await andThen(rest, (judges) => this.#asEarlier(domain, earlier, judges))
    const proved = await andThen(rest, (judges) => this.#asUser(domain, person, judges))
    return await andThen(proved, (value) => this.#keep(value, kept))
  }

  async #keep(proved: Proved, kept: Judged['kept']): Promise<Step<Proved>> {
    if (kept) await this.#options.offline?.keep(proved.user, kept.auth, kept.hash)
    return { result: 'accepted', value: proved }
  }

  /** Returns the person with the groups that were seen last. */
  async #asEarlier(domain: AuthDomain, { id }: User, judges: readonly Judge[]): Promise<Step<Proved>> {
    const { authDomains, users } = this.#options.store
    const now = await authDomains.find(domain.id)
    if (!now || !asksSame(now, domain)) return { result: 'rejected', reason: 'method_not_allowed' }
    const user = await users.find(id)
    if (!user) return { result: 'rejected', reason: 'unmapped' }
    const by = judges.map(({ name }) => name)
    return { result: 'accepted', value: { user, by, ...classesOf(judges), isOffline: true } }
  }

  /**
   * Finds the person of a name in a domain that has an attribute of public keys, as its first server that can judge has
   * described them within the last minute.
   */
  async look(
    domain: AuthDomain,
    userName: string,
    source: string,
  ): Promise<Exclude<Step<Person>, { result: 'challenge' }>> {
    if (domain.attributes.publicKey === undefined) return { result: 'rejected', reason: 'unknown_user' }
    try {
      const key = keyOfLook(domain, userName)
      const person = await this.#looks.of(key, () => this.#look(domain, userName, source))
      return person ? { result: 'accepted', value: person } : { result: 'rejected', reason: 'unknown_user' }
    } catch (error) {
      if (error instanceof UnavailableError) return unavailable(error.servers)
      throw error
    }
  }

  /** Takes as long as `look` does for a name that is not known, and asks no server. */
  async pretendLook(domain: AuthDomain, userName: string): Promise<void> {
    if (domain.attributes.publicKey === undefined) return
    await this.#looks.of(`local ${keyOfLook(domain, userName)}`, () => sleep(this.#lookMs, undefined))
  }

  /** Goes on after the person's key has signed: with each second factor of the domain. */
  async byKey(domain: AuthDomain, attempt: MethodAttempt, person: Person): Promise<Step<Proved>> {
    const rest = await this.#bySecond(domain, domain.secondaryAuthIds, attempt, [])
    return await andThen(rest, (judges) => this.#asUser(domain, person, judges))
  }

  /** @throws UnavailableError */
  async #look(domain: AuthDomain, userName: string, source: string): Promise<Person | undefined> {
    const failed: { server: string; reason: string }[] = []
    for (const id of domain.externalAuthIds) {
      const known = await this.#known(id, domain).catch(() => undefined)
      const begin = performance.now()
      const signal = AbortSignal.timeout(MAX_MS)
      const found = await known?.turns
        .run(source, async () => await known.method.look?.(userName, signal))
        .catch((error: Error) => ({ result: 'unavailable', reason: error.message }) as const)
      if (!found || found.result === 'unavailable') {
        failed.push({ server: known?.name ?? id, reason: found?.reason ?? 'it cannot be asked now' })
        continue
      }
      const time = Math.min(performance.now() - begin, MAX_TIME_MS)
      if (found.result === 'present') {
        this.#lookMs = time
        return found.person
      }
      // Groups were not read: the time does not show that there is no such person.
      this.#lookMs = Math.max(this.#lookMs, time)
      await sleep(this.#lookMs - time)
      return undefined
    }
    throw new UnavailableError(failed)
  }

  /** Proves a local user by the first of these external authentications that can judge. */
  async byNames(
    user: User,
    names: readonly string[],
    attempt: MethodAttempt,
    password: Secret,
  ): Promise<Step<Proved>> {
    const who = { name: user.userName, find: async () => user }
    const first = await this.#byFirst(names, undefined, attempt, password, who)
    return await andThen(first, async ({ by, kept, earlier }) => {
      // While the server judged, or they typed, the user may have been changed.
      const now = await this.#options.store.users.find(user.id)
      if (!now || !serversOf(now).includes(by.name))
        return { result: 'rejected', reason: 'method_not_allowed' }
      const proved = {
        user: now,
        by: [by.name],
        ...classesOf([by]),
        ...(earlier && { isOffline: true as const }),
      }
      return await this.#keep(proved, kept)
    })
  }

  /** Goes on after the first factor of a local user: with each second factor that the user names. */
  async afterLocal(proved: Proved, source: string): Promise<Step<Proved>> {
    const { user } = proved
    const servers = user.secondaryAuths ?? []
    if (servers.length === 0) return { result: 'accepted', value: proved }
    const rest = await this.#bySecond(undefined, servers, attemptOf(user.userName, source), [])
    return await andThen(rest, async (judges) => {
      // While they typed, the password, the keys or the servers may have been changed.
      const now = await this.#options.store.users.find(user.id)
      return now && isProvedSame(now, user)
        ? {
            result: 'accepted',
            value: {
              ...proved,
              user: now,
              second: judges.map(({ name }) => name),
              ...classesOf(judges, proved.classes),
            },
          }
        : { result: 'rejected', reason: 'method_not_allowed' }
    })
  }

  /**
   * Takes as long as one of the last rejections by a server did: for a name that no server was asked about, so that the
   * time does not show whether a name is a local user's.
   */
  async pretend(): Promise<void> {
    if (this.#times.length > 0) await sleep(this.#times[randomInt(this.#times.length)]!)
  }

  async #byFirst(
    ids: readonly (Id | string)[],
    domain: DomainOfMethod | undefined,
    attempt: MethodAttempt,
    password: Secret,
    who: { name: string; find: () => Promise<User | undefined> },
  ): Promise<Step<Judged>> {
    const { offline } = this.#options
    const failed: { server: string; reason: string }[] = []
    const away: ExternalAuth[] = []
    for (const id of ids) {
      let asked: ExternalAuth | undefined
      const step = await this.#ask(id, domain, attempt, (known, signal) => {
        asked = known.auth
        return known.method.prove(attempt, password, signal)
      })
      const auth = asked ?? (await this.#options.store.externalAuths.find(id))
      if (step.result === 'unavailable') {
        failed.push(step)
        if (auth) away.push(auth)
      } else if (!auth || !offline) return step
      else if (step.result === 'accepted') {
        const hash = await offline.hashOf(auth, password)
        return { ...step, value: { ...step.value, ...(hash !== undefined && { kept: { auth, hash } }) } }
      } else {
        // A server that wants more than the password cannot be stood in for.
        await offline.forget(auth, who.name)
        return step
      }
    }
    const user = offline && away.length > 0 ? await who.find() : undefined
    const by = await offline?.judge(user, away, password, attempt.source)
    if (!by || !user) return unavailable(failed)
    const person = { userName: attempt.userName, groups: [] }
    return { result: 'accepted', value: { person, by: { name: by.authenticationName }, earlier: user } }
  }

  /** Asks for each second factor what the user has for it: `judges` are those that have judged already. */
  async #bySecond(
    domain: DomainOfMethod | undefined,
    [id, ...rest]: readonly (Id | string)[],
    attempt: MethodAttempt,
    judges: readonly Judge[],
  ): Promise<Step<Judge[]>> {
    if (id === undefined) return { result: 'accepted', value: [...judges] }
    const round: Round<Judged> = {
      message: '',
      prompts: [{ text: 'Second factor: ', echo: false }],
      next: async ([code]) => {
        // Every method refuses an empty one.
        const typed = code ?? Secret.of('')
        return await this.#ask(id, domain, attempt, (known, signal) =>
          known.method.prove(attempt, typed, signal),
        )
      },
      close: () => undefined,
    }
    return await andThen({ result: 'challenge', round }, ({ by }) =>
      this.#bySecond(domain, rest, attempt, [...judges, by]),
    )
  }

  async #asUser(domain: AuthDomain, person: Person, judges: readonly Judge[]): Promise<Step<Proved>> {
    const { authDomains, persons } = this.#options.store
    const now = await authDomains.find(domain.id)
    // While they judged, or the person typed, the servers may have been taken from the domain.
    if (!now || !asksSame(now, domain)) return { result: 'rejected', reason: 'method_not_allowed' }
    const user = await persons.signedIn(domain.id, person)
    if (!user) return { result: 'rejected', reason: 'unmapped' }
    const by = judges.map(({ name }) => name)
    return { result: 'accepted', value: { user, by, ...classesOf(judges) } }
  }

  async #ask(
    id: Id | string,
    domain: DomainOfMethod | undefined,
    attempt: MethodAttempt,
    ask: (known: KnownMethod, signal: AbortSignal) => Promise<MethodAnswer>,
  ): Promise<Step<Judged>> {
    let known: KnownMethod
    try {
      known = await this.#known(id, domain)
    } catch (error) {
      return { result: 'unavailable', server: id, reason: (error as Error).message }
    }
    return await this.#judge(known, attempt, (signal) => ask(known, signal))
  }

  /** @throws Error if there is no such external authentication, or its secrets cannot be opened */
  async #known(id: Id | string, domain: DomainOfMethod | undefined): Promise<KnownMethod> {
    const { registry, store } = this.#options
    const auth = await store.externalAuths.find(id)
    if (!auth) throw new Error('there is no such external authentication')
    const method = await registry.of(auth, domain?.attributes)
    return {
      id: auth.id,
      type: auth.type,
      name: auth.authenticationName,
      auth,
      method,
      turns: this.#turnsOf(auth.id),
    }
  }

  async #judge(
    known: KnownMethod,
    attempt: MethodAttempt,
    ask: (signal: AbortSignal) => Promise<MethodAnswer>,
    before?: Question,
  ): Promise<Step<Judged>> {
    const server = known.name
    const begin = performance.now()
    const answer = await known.turns
      .run(attempt.source, () => ask(AbortSignal.timeout(MAX_MS)))
      .catch((error: Error): MethodAnswer => ({ result: 'unavailable', reason: error.message }))
    if (answer) this.onJudged?.(known.type, answer.result, performance.now() - begin)
    switch (answer?.result) {
      case undefined:
        return { result: 'unavailable', server, reason: 'too many sign-ins wait for its servers' }
      case 'accepted':
        return { result: 'accepted', value: { person: answer.person, by: judgeOf(known, answer.classes) } }
      case 'rejected':
        this.#note(performance.now() - begin)
        return { result: 'rejected', reason: answer.reason }
      case 'unavailable':
        return { result: 'unavailable', server, reason: answer.reason }
      case 'challenge':
        return { result: 'challenge', round: this.#round(known, attempt, answer, before) }
    }
  }

  #round(
    known: KnownMethod,
    attempt: MethodAttempt,
    { message, prompts, state, answered, setsPassword }: Extract<MethodAnswer, { result: 'challenge' }>,
    before: Question | undefined,
  ): Round<Judged> {
    const question = setsPassword ? before : questionAfter(before, prompts, answered)
    return {
      message,
      prompts,
      ...(!setsPassword && question?.isAgain && { isAgain: true }),
      next: (answers) =>
        this.#judge(
          known,
          attempt,
          (signal) => known.method.answer(attempt, state, answers, signal),
          question,
        ),
      close: () => state.close(),
    }
  }

  #turnsOf(id: Id): Turns {
    const turns = this.#turns.get(id) ?? new Turns()
    this.#turns.set(id, turns)
    return turns
  }

  #note(time: number): void {
    this.#times.push(Math.min(time, MAX_TIME_MS))
    if (MAX_TIMES < this.#times.length) this.#times.shift()
  }
}

/** Returns an attempt with an id of its own. */
export function attemptOf(userName: string, source: string): MethodAttempt {
  return { userName, source, attempt: randomBytes(8).toString('hex') }
}

function asksSame(a: AuthDomain, b: AuthDomain): boolean {
  return isDeepStrictEqual([a.externalAuthIds, a.secondaryAuthIds], [b.externalAuthIds, b.secondaryAuthIds])
}

function judgeOf({ id, name }: KnownMethod, classes: readonly Uint8Array[] = []): Judge {
  const values = classes.map((value) => Buffer.from(value).toString('base64'))
  return { name, ...(values.length > 0 && { classes: { externalAuthId: id, values } }) }
}

function classesOf(
  judges: readonly Judge[],
  before: readonly AccountingClass[] = [],
): Pick<Proved, 'classes'> {
  const classes = [...before, ...judges.flatMap((judge) => judge.classes ?? [])]
  return classes.length === 0 ? {} : { classes }
}

function isProvedSame(a: User, b: User): boolean {
  const proved = (user: User) => [
    user.userAuths,
    user.secondaryAuths,
    user.secretRevision,
    user.sshPublicKeys,
  ]
  return isDeepStrictEqual(proved(a), proved(b))
}

function keyOfLook({ id, attributes, externalAuthIds }: AuthDomain, userName: string): string {
  return JSON.stringify([id, attributes, externalAuthIds, userName])
}

function unavailable(failed: readonly { server: string; reason: string }[]) {
  return {
    result: 'unavailable',
    server: failed.map(({ server }) => server).join(', '),
    reason: failed.map(({ reason }) => reason).join('; ') || 'no server is configured',
  } as const
}
