/**
 * Sign-in by an LDAP directory or Active Directory: the person is searched for with the service's account, and their
 * password is proved by a bind (RFC 4513).
 */
import { randomBytes } from 'node:crypto'
import { ResultCodeError } from 'ldapts'
import type { AuthDomainAttributes, ExternalAuth } from '../../../model/external-auths.ts'
import { Secret } from '../../../model/secret.ts'
import type {
  MethodAnswer,
  MethodAttempt,
  MethodState,
  PersonLook,
  SignInMethod,
  TestRequest,
  TestStep,
} from '../method.ts'
import { ReportedError, ServerOrder } from '../servers.ts'
import { changePassword, passwordFlaw } from './change.ts'
import { nameOf } from './connection.ts'
import { type Found, findPerson, readPerson, standingOf } from './person.ts'
import { mustChange, refusalOf } from './refusals.ts'
import { becomeAnonymous, bind, DirectoryServer, said } from './server.ts'
import { tryDirectory } from './trial.ts'

const PORTS = { ldaps: 636, starttls: 389, none: 389 } as const
/** Times that a user may try to find a new password. */
const MAX_CHANGES = 3
const MAX_NAME = 256
/** Longest time for all the questions to one server, in milliseconds: shorter than any sign-in waits. */
const MAX_SERVER_MS = 60_000

export interface LdapSettings {
  auth: Extract<ExternalAuth, { type: 'LDAP' }>
  /** Of the authentication domain; none for a method that a local user names. */
  attributes: AuthDomainAttributes
  secrets: { bindPassword?: Secret; clientKey?: Secret }
  /** Milliseconds since the epoch. */
  now: () => number
  /** Told each failure of a server. */
  onFailure: (server: string, error: Error) => void
}

/** A change of password that is under way. */
class Change implements MethodState {
  readonly server: DirectoryServer
  readonly found: Found
  readonly old: Secret
  tries = 0

  constructor(server: DirectoryServer, found: Found, old: Secret) {
    this.server = server
    this.found = found
    this.old = old
  }

  close(): void {
    this.old.wipe()
  }
}

export class LdapMethod implements SignInMethod {
  readonly #settings: LdapSettings
  readonly #servers: DirectoryServer[]
  readonly #order: ServerOrder<DirectoryServer>

  constructor(settings: LdapSettings) {
    const { auth, secrets, now } = settings
    this.#settings = settings
    this.#servers = auth.servers.map(
      ({ host, port = PORTS[auth.options.security] }) =>
        new DirectoryServer(
          {
            host,
            port,
            options: auth.options,
            timeoutMs: auth.timeoutMs,
            ...(secrets.clientKey && { clientKey: secrets.clientKey.revealText() }),
          },
          auth.options.bindDn,
          secrets.bindPassword,
        ),
    )
    this.#order = new ServerOrder(this.#servers, now)
  }

  async prove(attempt: MethodAttempt, password: Secret, signal: AbortSignal): Promise<MethodAnswer> {
    if (password.length === 0) return { result: 'rejected', reason: 'wrong_password' }
    if (attempt.userName === '' || attempt.userName.length > MAX_NAME)
      return { result: 'rejected', reason: 'unknown_user' }
    return await this.#first(
      (server, limit) => this.#prove(server, attempt.userName, password, limit),
      signal,
    )
  }

  async answer(
    _attempt: MethodAttempt,
    state: MethodState,
    answers: readonly Secret[],
    signal: AbortSignal,
  ): Promise<MethodAnswer> {
    if (!(state instanceof Change)) throw new Error('the state of another method')
    const [next, again] = answers
    if (!next || !again) return { result: 'rejected', reason: 'password_expired' }
    const flaw = passwordFlaw(next, again, state.old)
    if (flaw !== undefined) return this.#askAgain(state, flaw)
    try {
      return await this.#change(state, next, signal)
    } catch (error) {
      if (error instanceof ResultCodeError)
        return this.#askAgain(state, `the directory refuses it: ${said(error.message)}`)
      state.close()
      return { result: 'unavailable', reason: (error as Error).message }
    }
  }

  async look(userName: string, signal: AbortSignal): Promise<PersonLook> {
    const { auth, attributes, now } = this.#settings
    return await this.#first(
      (server, limit) =>
        server.searching.use(limit, async (connection): Promise<PersonLook> => {
          const found = await findPerson(connection, auth.options, attributes, userName, limit)
          if (!found) return { result: 'absent', reason: 'unknown_user' }
          const reason = standingOf(found, now())
          if (reason) return { result: 'absent', reason }
          const person = await readPerson(connection, auth.options, attributes, found, limit)
          return { result: 'present', person }
        }),
      signal,
    )
  }

  async test(request: TestRequest, signal: AbortSignal): Promise<TestStep[]> {
    const { auth, attributes, now } = this.#settings
    const steps: TestStep[] = []
    for (const server of this.#servers) {
      steps.push(
        ...(await tryDirectory({ server, options: auth.options, attributes, now: now(), request, signal })),
      )
    }
    return steps
  }

  async close(): Promise<void> {
    for (const server of this.#servers) server.close()
  }

  /** `ask` has the time of one server. */
  async #first<T extends MethodAnswer | PersonLook>(
    ask: (server: DirectoryServer, limit: AbortSignal) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T | { result: 'unavailable'; reason: string }> {
    const limitMs = Math.min(2 * this.#settings.auth.timeoutMs, MAX_SERVER_MS)
    const reasons: string[] = []
    const answer = await this.#order.first(
      async (server) => {
        try {
          return await ask(server, AbortSignal.any([signal, AbortSignal.timeout(limitMs)]))
        } catch (error) {
          // It answers, and is there for others.
          if (error instanceof ResultCodeError)
            throw new ReportedError(`${nameOf(server.endpoint)} cannot judge: ${said(error.message)}`)
          throw error
        }
      },
      (server, error) => {
        const reason = said(error.message)
        reasons.push(reason)
        this.#settings.onFailure(nameOf(server.endpoint), error)
      },
      signal,
    )
    return (
      answer ?? { result: 'unavailable', reason: reasons.join('; ') || 'no server answered a moment ago' }
    )
  }

  async #prove(
    server: DirectoryServer,
    userName: string,
    password: Secret,
    signal: AbortSignal,
  ): Promise<MethodAnswer> {
    const { auth, attributes } = this.#settings
    const found = await server.searching.use(signal, (connection) =>
      findPerson(connection, auth.options, attributes, userName, signal),
    )
    // The same traffic for an unknown name; the user's password goes to no name that might exist.
    const { refused, policy } = found
      ? await server.tryPassword(found.dn, password, signal)
      : await server.tryPassword(
          `cn=${randomBytes(12).toString('hex')},${auth.options.baseDn}`,
          Secret.of('-'),
          signal,
        )
    if (!found) return { result: 'rejected', reason: 'unknown_user' }
    if (refused) {
      const reason = refusalOf(refused, policy)
      if (reason === undefined) throw refused
      return reason === 'must_change'
        ? this.#offerChange(server, found, password)
        : { result: 'rejected', reason }
    }
    if (mustChange(policy)) return this.#offerChange(server, found, password)
    return await this.#accept(server, found, signal)
  }

  async #accept(server: DirectoryServer, found: Found, signal: AbortSignal): Promise<MethodAnswer> {
    const { auth, attributes } = this.#settings
    const person = await server.searching.use(signal, (connection) =>
      readPerson(connection, auth.options, attributes, found, signal),
    )
    return { result: 'accepted', person }
  }

  #offerChange(server: DirectoryServer, found: Found, password: Secret): MethodAnswer {
    const { security, directory } = this.#settings.auth.options
    // Active Directory changes none without TLS; the new password would have been sent in vain, and in clear.
    if (security === 'none' && directory === 'active_directory')
      return { result: 'rejected', reason: 'password_expired' }
    return this.#ask(new Change(server, found, Secret.of(password.reveal())), MUST_CHANGE)
  }

  #ask(state: Change, message: string): MethodAnswer {
    const prompts = [
      { text: 'New password: ', echo: false },
      { text: 'New password again: ', echo: false },
    ]
    return { result: 'challenge', message, prompts, state, setsPassword: true }
  }

  #askAgain(state: Change, flaw: string): MethodAnswer {
    state.tries += 1
    if (state.tries < MAX_CHANGES) return this.#ask(state, `Not changed: ${flaw}.`)
    state.close()
    return { result: 'rejected', reason: 'password_expired' }
  }

  async #change({ server, found, old }: Change, next: Secret, signal: AbortSignal): Promise<MethodAnswer> {
    const { auth } = this.#settings
    const isActiveDirectory = auth.options.directory === 'active_directory'
    // Active Directory lets no account bind that has to change its password: the old one in the change is the proof.
    const leases = isActiveDirectory ? server.searching : server.binding
    await leases.useOnce(signal, async (connection) => {
      if (isActiveDirectory) {
        await changePassword(connection, auth.options, found.dn, old, next, signal)
        return
      }
      const { refused, policy } = await bind(connection, found.dn, old, signal)
      if (refused && !mustChange(policy)) throw refused
      try {
        await changePassword(connection, auth.options, found.dn, old, next, signal)
      } finally {
        await becomeAnonymous(connection, signal)
      }
    })
    const { refused } = await server.tryPassword(found.dn, next, signal)
    old.wipe()
    if (refused) return { result: 'rejected', reason: 'wrong_password' }
    return await this.#accept(server, found, signal)
  }
}

const MUST_CHANGE = 'Your password has to be changed before you can sign in.'
