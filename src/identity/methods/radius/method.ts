/** Sign-in by a RADIUS server (RFC 2865): the password in an Access-Request, and challenges until it has decided. */
import { Buffer } from 'node:buffer'
import type { AuthDomainAttributes, ExternalAuth } from '../../../model/external-auths.ts'
import type { Secret } from '../../../model/secret.ts'
import type {
  MethodAnswer,
  MethodAttempt,
  MethodState,
  SignInMethod,
  TestRequest,
  TestStep,
} from '../method.ts'
import { ReportedError, ServerOrder } from '../servers.ts'
import { shown } from '../words.ts'
import { Challenge, messageOf, questionOf } from './dialogue.ts'
import {
  ATTRIBUTES,
  type Attribute,
  CODES,
  MAX_PASSWORD,
  MAX_VALUE,
  RadiusError,
  type Reply,
} from './packet.ts'
import { classesOf, isSendable, personOf } from './person.ts'
import { RADIUS_PORT, RadiusServer } from './server.ts'

const MAX_SAID = 200
const MAX_DETAIL = 400
const NAS_IDENTIFIER = 'sallyport'
/** Value of Service-Type: a person signs in at a host. */
const LOGIN = Buffer.from([0, 0, 0, 1])

export interface RadiusSettings {
  auth: Extract<ExternalAuth, { type: 'RADIUS' }>
  /** Of the authentication domain; none for a method that a local user names. */
  attributes: AuthDomainAttributes
  secrets: { sharedSecret?: Secret }
  /** Milliseconds since the epoch. */
  now: () => number
  /** Told each failure of a server. */
  onFailure: (server: string, error: Error) => void
}

export class RadiusMethod implements SignInMethod {
  readonly #settings: RadiusSettings
  readonly #servers: RadiusServer[]
  readonly #order: ServerOrder<RadiusServer>

  constructor(settings: RadiusSettings) {
    this.#settings = settings
    const { servers, timeoutMs, options } = settings.auth
    const { requireMessageAuthenticator, tries } = options
    this.#servers = servers.map(
      ({ host, port = RADIUS_PORT }) =>
        new RadiusServer({
          host,
          port,
          sharedSecret: settings.secrets.sharedSecret,
          requireMessageAuthenticator,
          timeoutMs,
          tries,
        }),
    )
    this.#order = new ServerOrder(this.#servers, settings.now)
  }

  async prove(attempt: MethodAttempt, password: Secret, signal: AbortSignal): Promise<MethodAnswer> {
    if (password.length === 0) return { result: 'rejected', reason: 'wrong_password' }
    if (!isSendable(attempt.userName)) return { result: 'rejected', reason: 'unknown_user' }
    if (password.length > MAX_PASSWORD) return { result: 'rejected', reason: 'wrong_password' }
    const reasons: string[] = []
    const answer = await this.#order.first(
      async (server) =>
        this.#judge(server, await this.#request(server, attempt, password, [], signal), attempt),
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

  async answer(
    attempt: MethodAttempt,
    state: MethodState,
    answers: readonly Secret[],
    signal: AbortSignal,
  ): Promise<MethodAnswer> {
    if (!(state instanceof Challenge)) throw new Error('the state of another method')
    const [answer] = answers
    if (!answer || answer.length > MAX_PASSWORD || state.userName !== attempt.userName) {
      state.close()
      return { result: 'rejected', reason: 'wrong_password' }
    }
    try {
      // Only the server that asked knows the State.
      const reply = await this.#request(state.server, attempt, answer, state.take(), signal)
      return this.#judge(state.server, reply, attempt, state)
    } catch (error) {
      if (!signal.aborted) this.#settings.onFailure(state.server.name, error as Error)
      return { result: 'unavailable', reason: said((error as Error).message) }
    }
  }

  async test(request: TestRequest, signal: AbortSignal): Promise<TestStep[]> {
    const steps: TestStep[] = []
    for (const server of this.#servers) steps.push(...(await this.#try(server, request, signal)))
    return steps
  }

  async close(): Promise<void> {
    for (const server of this.#servers) server.close()
  }

  async #request(
    server: RadiusServer,
    { userName, source }: Pick<MethodAttempt, 'userName' | 'source'>,
    password: Secret,
    more: readonly Attribute[],
    signal: AbortSignal,
  ): Promise<Reply> {
    const attributes = [
      text(ATTRIBUTES.userName, userName),
      nasIdentifierOf(this.#settings.auth),
      { type: ATTRIBUTES.serviceType, value: LOGIN },
      ...(source === '' ? [] : [text(ATTRIBUTES.callingStationId, source.slice(0, MAX_VALUE))]),
      ...more,
    ]
    return await server.ask({ code: CODES.accessRequest, attributes, password: password.reveal() }, signal)
  }

  #judge(
    server: RadiusServer,
    reply: Reply,
    { userName }: Pick<MethodAttempt, 'userName'>,
    before?: Challenge,
  ): MethodAnswer {
    switch (reply.code) {
      case CODES.accessAccept:
        try {
          return {
            result: 'accepted',
            person: personOf(userName, reply.attributes, this.#settings.attributes),
            classes: classesOf(reply.attributes),
          }
        } catch (error) {
          this.#settings.onFailure(server.name, error as Error)
          return { result: 'rejected', reason: 'not_allowed' }
        }
      case CODES.accessReject:
        return { result: 'rejected', reason: 'wrong_password' }
      case CODES.accessChallenge:
        return {
          result: 'challenge',
          ...questionOf(reply),
          state: Challenge.of(server, userName, reply, before),
        }
      default:
        throw new ReportedError(
          `${server.name}: expected an answer to Access-Request, got code ${reply.code}`,
        )
    }
  }

  async #try(
    server: RadiusServer,
    { userName, password }: TestRequest,
    signal: AbortSignal,
  ): Promise<TestStep[]> {
    const steps: TestStep[] = []
    let step: TestStep['step'] = 'reached'
    const passed = (detail: string, groups?: readonly string[]) =>
      steps.push({ step, ok: true, detail: shown(detail, MAX_DETAIL), ...(groups && { groups }) })
    try {
      passed(`${server.name} is at ${await server.address(signal)}`)
      step = 'answered'
      if (userName === undefined || password === undefined || password.length === 0) {
        await server.ask(
          { code: CODES.statusServer, attributes: [nasIdentifierOf(this.#settings.auth)] },
          signal,
        )
        passed('it answers Status-Server: the shared secret is the same')
        return steps
      }
      if (!isSendable(userName))
        throw new RadiusError('expected a name of 1 to 253 octets without control characters')
      const reply = await this.#request(server, { userName, source: '' }, password, [], signal)
      passed('its answer is proved: the shared secret is the same')
      step = 'signed_in'
      if (reply.code === CODES.accessChallenge) {
        passed(`the server asks for more than the password: ${messageOf(reply, MAX_SAID)}`)
        return steps
      }
      if (reply.code !== CODES.accessAccept)
        throw new RadiusError(
          `expected Access-Accept, got code ${reply.code}: ${messageOf(reply, MAX_SAID) || 'without a reason'}`,
        )
      const { groups } = personOf(userName, reply.attributes, this.#settings.attributes)
      passed(`signed in as ${userName}`)
      step = 'groups'
      passed(groups.length === 0 ? 'in no group' : groups.join('\n'), groups)
    } catch (error) {
      steps.push({ step, ok: false, detail: shown((error as Error).message, MAX_DETAIL) })
    }
    return steps
  }
}

/** Returns the name under which the bastion asks. */
export function nasIdentifierOf({ options }: RadiusSettings['auth']): Attribute {
  return text(ATTRIBUTES.nasIdentifier, options.nasIdentifier ?? NAS_IDENTIFIER)
}

const text = (type: number, value: string): Attribute => ({ type, value: Buffer.from(value) })
const said = (words: string): string => shown(words, MAX_SAID).replaceAll('\n', ' ')
