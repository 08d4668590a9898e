/** Trials of servers by administrators: step by step, with bounds, and without a secret in what they find. */
import type { AuthDomain, AuthDomainAttributes, ExternalAuth } from '../model/external-auths.ts'
import type { Store } from '../store/store.ts'
import { BusyError } from './errors.ts'
import type { TestRequest, TestStep } from './methods/method.ts'
import type { MethodRegistry } from './methods/registry.ts'

/** Milliseconds of one trial, and the time in which the trials of one caller are counted. */
export const TRIAL_MS = 60_000
const COUNTED_MS = 60_000
/** Trials of one caller in that time. A trial may prove a password, which must not make guessing easy. */
export const MAX_TRIALS = 10
/** Trials at a time, of all callers. */
const MAX_TOGETHER = 4

export interface TrialOptions {
  store: Pick<Store, 'externalAuths' | 'persons' | 'userGroups' | 'users'>
  registry: Pick<MethodRegistry, 'make'>
  /** Milliseconds since the epoch. */
  now: () => number
}

export interface TrialStep {
  /** Name of the external authentication; empty for what the bastion itself does. */
  server: string
  step: TestStep['step'] | 'mapped'
  ok: boolean
  detail: string
}

export class Trials {
  readonly #options: TrialOptions
  /** Times of the last trials, by caller. */
  readonly #times = new Map<string, number[]>()
  readonly #running = new Set<string>()

  constructor(options: TrialOptions) {
    this.#options = options
  }

  /** Tries the servers of one object. @throws BusyError for a caller that has tried too often, or tries now */
  async ofAuth(caller: string, auth: ExternalAuth, request: TestRequest): Promise<TrialStep[]> {
    return await this.#counted(caller, async (signal) => {
      const { steps } = await this.#try(auth, {}, request, signal)
      return steps
    })
  }

  /** Tries all servers of a domain, and says what its mappings give. @throws BusyError as `ofAuth` does */
  async ofDomain(caller: string, domain: AuthDomain, request: TestRequest): Promise<TrialStep[]> {
    const { store } = this.#options
    return await this.#counted(caller, async (signal) => {
      const all: TrialStep[] = []
      let found: readonly string[] | undefined
      for (const id of domain.externalAuthIds) {
        const auth = await store.externalAuths.find(id)
        if (!auth) continue
        const { steps, groups } = await this.#try(auth, domain.attributes, request, signal)
        all.push(...steps)
        found ??= groups
      }
      for (const id of domain.secondaryAuthIds) {
        const auth = await store.externalAuths.find(id)
        if (auth) all.push(...(await this.#try(auth, domain.attributes, {}, signal)).steps)
      }
      if (request.userName !== undefined && found)
        all.push({ server: '', step: 'mapped', ...(await this.#mapped(domain, request.userName, found)) })
      return all
    })
  }

  async #mapped(
    domain: AuthDomain,
    userName: string,
    groups: readonly string[],
  ): Promise<Pick<TrialStep, 'ok' | 'detail'>> {
    const { store } = this.#options
    const name = `${userName}@${domain.domainName}`
    const holder = await store.users.find(name)
    if (holder && holder.authDomainId !== domain.id)
      return { ok: false, detail: `expected a free name, ${name} is a local user: rename that user` }
    const given = await store.persons.mappedTo(domain.id, groups)
    if (!given) {
      const detail = 'expected a mapping of one of the groups, or of *, found none: such a person is refused'
      return { ok: false, detail }
    }
    const names = await Promise.all(
      given.groupIds.map(async (id) => (await store.userGroups.find(id))?.groupName ?? id),
    )
    return { ok: true, detail: `the user groups ${names.join(', ')}, with the profile ${given.profile}` }
  }

  async #try(
    auth: ExternalAuth,
    attributes: AuthDomainAttributes,
    request: TestRequest,
    signal: AbortSignal,
  ): Promise<{ steps: TrialStep[]; groups: readonly string[] | undefined }> {
    const server = auth.authenticationName
    try {
      const method = await this.#options.registry.make(auth, attributes)
      try {
        const steps = await method.test(request, signal)
        return {
          steps: steps.map(({ step, ok, detail }) => ({ server, step, ok, detail: hidden(detail, request) })),
          groups: steps.find(({ groups }) => groups)?.groups,
        }
      } finally {
        await method.close()
      }
    } catch (error) {
      // Its secrets cannot be opened, or its options be read.
      const detail = hidden((error as Error).message, request)
      return { steps: [{ server, step: 'reached', ok: false, detail }], groups: undefined }
    }
  }

  async #counted<T>(caller: string, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const since = this.#options.now() - COUNTED_MS
    for (const [one, times] of this.#times) {
      const late = times.filter((time) => since < time)
      if (late.length === 0) this.#times.delete(one)
      else this.#times.set(one, late)
    }
    const times = this.#times.get(caller) ?? []
    if (MAX_TRIALS <= times.length || MAX_TOGETHER <= this.#running.size || this.#running.has(caller))
      throw new BusyError()
    this.#times.set(caller, [...times, this.#options.now()])
    this.#running.add(caller)
    const ended = new AbortController()
    const reason = new Error(
      `the trial ends after ${TRIAL_MS / 1000} s: try single servers, or a shorter timeout`,
    )
    const timer = setTimeout(() => ended.abort(reason), TRIAL_MS)
    try {
      return await run(ended.signal)
    } finally {
      clearTimeout(timer)
      this.#running.delete(caller)
    }
  }
}

/** Returns the words without the password, which a server could repeat. */
function hidden(text: string, { password }: TestRequest): string {
  return password === undefined || password.length === 0
    ? text
    : text.replaceAll(password.revealText(), '[secret]')
}
