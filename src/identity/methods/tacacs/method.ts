/** Sign-in by a TACACS+ server (RFC 8907): PAP or the ASCII dialogue, then the groups by an authorization. */
import { Buffer } from 'node:buffer'
import type { AuthDomainAttributes, ExternalAuth } from '../../../model/external-auths.ts'
import type { Secret } from '../../../model/secret.ts'
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
import { shown } from '../words.ts'
import { Dialogue, type Turn } from './dialogue.ts'
import {
  type AuthenticationReply,
  authenticationStart,
  authorizationRequest,
  type Caller,
  MAX_SHORT,
  readAuthenticationReply,
  readAuthorizationReply,
} from './messages.ts'
import { TacacsError } from './packet.ts'
import { isSendable, personOf, SHELL } from './person.ts'
import { TACACS_PORT, TacacsServer } from './server.ts'
import { tryServer } from './trial.ts'

/** Name of the line: the bastion's sign-ins have none of their own. */
export const PORT_NAME = 'sallyport'
const MAX_SAID = 200
/** Longest answer to a question, in bytes. */
const MAX_ANSWER = 1024

export interface TacacsSettings {
  auth: Extract<ExternalAuth, { type: 'TACACS' }>
  /** Of the authentication domain; none for a method that a local user names. */
  attributes: AuthDomainAttributes
  secrets: { sharedSecret?: Secret }
  /** Milliseconds since the epoch. */
  now: () => number
  /** Told each failure of a server. */
  onFailure: (server: string, error: Error) => void
}

/** Returns the servers of an object, in order. */
export function tacacsServers(
  { servers, timeoutMs, options }: TacacsSettings['auth'],
  sharedSecret: Secret | undefined,
): TacacsServer[] {
  const { singleConnect, allowPublicNetworks } = options
  return servers.map(
    ({ host, port = TACACS_PORT }) =>
      new TacacsServer({ host, port, sharedSecret, singleConnect, allowPublicNetworks, timeoutMs }),
  )
}

export class TacacsMethod implements SignInMethod {
  readonly #settings: TacacsSettings
  readonly #servers: TacacsServer[]
  readonly #order: ServerOrder<TacacsServer>
  /** Looks a person up by the authorization; absent where the server is not asked for one. */
  readonly look?: (userName: string, signal: AbortSignal) => Promise<PersonLook>

  constructor(settings: TacacsSettings) {
    this.#settings = settings
    this.#servers = tacacsServers(settings.auth, settings.secrets.sharedSecret)
    this.#order = new ServerOrder(this.#servers, settings.now)
    if (settings.auth.options.authorization) this.look = (userName, signal) => this.#look(userName, signal)
  }

  async prove(attempt: MethodAttempt, password: Secret, signal: AbortSignal): Promise<MethodAnswer> {
    if (password.length === 0) return { result: 'rejected', reason: 'wrong_password' }
    if (!isSendable(attempt.userName)) return { result: 'rejected', reason: 'unknown_user' }
    if (password.length > MAX_SHORT) return { result: 'rejected', reason: 'wrong_password' }
    const { authentication } = this.#settings.auth.options
    return await this.#first(
      (server) =>
        authentication === 'pap'
          ? this.#byPap(server, attempt, password, signal)
          : this.#byDialogue(server, attempt, password, signal),
      signal,
    )
  }

  async answer(
    attempt: MethodAttempt,
    state: MethodState,
    answers: readonly Secret[],
    signal: AbortSignal,
  ): Promise<MethodAnswer> {
    if (!(state instanceof Dialogue)) throw new Error('the state of another method')
    const [answer] = answers
    if (!answer || answer.length > MAX_ANSWER || state.userName !== attempt.userName) {
      state.close()
      return { result: 'rejected', reason: 'wrong_password' }
    }
    try {
      return await this.#heed(state, await state.answer(answer, signal), attempt, signal)
    } catch (error) {
      state.close()
      if (!signal.aborted) this.#settings.onFailure(state.server.name, error as Error)
      return { result: 'unavailable', reason: said((error as Error).message) }
    }
  }

  async test(request: TestRequest, signal: AbortSignal): Promise<TestStep[]> {
    const { auth, attributes } = this.#settings
    const steps: TestStep[] = []
    for (const server of this.#servers)
      steps.push(...(await tryServer({ server, options: auth.options, attributes, request, signal })))
    return steps
  }

  async close(): Promise<void> {
    for (const server of this.#servers) server.close()
  }

  async #look(userName: string, signal: AbortSignal): Promise<PersonLook> {
    if (!isSendable(userName)) return { result: 'absent', reason: 'unknown_user' }
    const answer = await this.#first(
      (server) => this.#authorize(server, { user: userName, port: PORT_NAME, source: '' }, signal),
      signal,
    )
    if (answer.result === 'accepted') return { result: 'present', person: answer.person }
    return answer.result === 'rejected' ? { result: 'absent', reason: answer.reason } : answer
  }

  async #byPap(
    server: TacacsServer,
    attempt: MethodAttempt,
    password: Secret,
    signal: AbortSignal,
  ): Promise<MethodAnswer> {
    const body = authenticationStart('pap', callerOf(attempt), password.reveal())
    const reply = readAuthenticationReply(await server.ask('authentication', 1, body, signal))
    return await this.#judge(server, reply, attempt, signal)
  }

  async #byDialogue(
    server: TacacsServer,
    attempt: MethodAttempt,
    password: Secret,
    signal: AbortSignal,
  ): Promise<MethodAnswer> {
    const body = authenticationStart('ascii', callerOf(attempt), Buffer.alloc(0))
    const { session, reply } = await server.begin('authentication', 0, body, signal)
    const dialogue = new Dialogue(server, session, attempt.userName)
    try {
      return await this.#heed(dialogue, await dialogue.follow(reply, password, signal), attempt, signal)
    } catch (error) {
      dialogue.close()
      throw error
    }
  }

  async #heed(
    dialogue: Dialogue,
    turn: Turn,
    attempt: MethodAttempt,
    signal: AbortSignal,
  ): Promise<MethodAnswer> {
    if ('question' in turn) return { result: 'challenge', ...turn.question, state: dialogue }
    return await this.#judge(dialogue.server, turn.verdict, attempt, signal)
  }

  async #judge(
    server: TacacsServer,
    { status, message }: AuthenticationReply,
    attempt: MethodAttempt,
    signal: AbortSignal,
  ): Promise<MethodAnswer> {
    switch (status) {
      case 'pass':
        return await this.#authorize(server, callerOf(attempt), signal)
      case 'fail':
        return { result: 'rejected', reason: 'wrong_password' }
      // Both count as a failure where they are not followed (RFC 8907 5.4.3, 10.5.4).
      case 'follow':
      case 'restart':
        this.#settings.onFailure(server.name, new TacacsError(`it asks for another ${ELSEWHERE[status]}`))
        return { result: 'rejected', reason: 'not_allowed' }
      case 'error':
        throw new ReportedError(`${server.name} reports an error: ${shown(message, MAX_SAID)}`)
      default:
        throw new TacacsError(`${server.name} asked a question (${status}) where PAP has none`)
    }
  }

  async #authorize(server: TacacsServer, caller: Caller, signal: AbortSignal): Promise<Judged> {
    const { auth, attributes } = this.#settings
    if (!auth.options.authorization)
      return { result: 'accepted', person: { userName: caller.user, groups: [] } }
    const body = authorizationRequest(auth.options.authentication, caller, SHELL)
    const reply = readAuthorizationReply(await server.ask('authorization', 0, body, signal))
    switch (reply.status) {
      case 'add':
      case 'replace':
        try {
          return { result: 'accepted', person: personOf(caller.user, reply, attributes) }
        } catch (error) {
          this.#settings.onFailure(server.name, error as Error)
          return { result: 'rejected', reason: 'not_allowed' }
        }
      case 'error':
        throw new ReportedError(`${server.name} reports an error: ${shown(reply.message, MAX_SAID)}`)
      default:
        return { result: 'rejected', reason: 'not_allowed' }
    }
  }

  async #first<T extends MethodAnswer>(
    ask: (server: TacacsServer) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T | { result: 'unavailable'; reason: string }> {
    const reasons: string[] = []
    const answer = await this.#order.first(
      ask,
      (server, error) => {
        reasons.push(said(error.message))
        this.#settings.onFailure(server.name, error)
      },
      signal,
    )
    return (
      answer ?? { result: 'unavailable', reason: reasons.join('; ') || 'no server answered a moment ago' }
    )
  }
}

type Judged = Exclude<MethodAnswer, { result: 'challenge' }>

const ELSEWHERE = {
  follow: 'server to be asked, which is never followed',
  restart: 'kind of authentication: set `authentication` to it',
} as const

function callerOf({ userName, source }: MethodAttempt): Caller {
  return { user: userName, port: PORT_NAME, source: source.slice(0, MAX_SHORT) }
}

const said = (text: string): string => shown(text, MAX_SAID).replaceAll('\n', ' ')
