/** Sign-in by a password that a Kerberos KDC judges (RFC 4120); the KDC is proved by a key of ours. */
import { Buffer } from 'node:buffer'
import { acceptToken } from '../../../kerberos/acceptor.ts'
import { type KeytabEntry, readKeytab } from '../../../kerberos/keytab.ts'
import { readKdcAnswer } from '../../../kerberos/messages.ts'
import { acceptNegotiate } from '../../../kerberos/negotiate.ts'
import { serviceOf } from '../../../kerberos/password.ts'
import { KdcRefusal } from '../../../kerberos/refusals.ts'
import type { Replays } from '../../../kerberos/replays.ts'
import { type HeldTicket, serviceTicket, strangerRequest } from '../../../kerberos/requests.ts'
import type { ExternalAuth } from '../../../model/external-auths.ts'
import type { Secret } from '../../../model/secret.ts'
import {
  type MethodAnswer,
  type MethodAttempt,
  type MethodRefusal,
  type MethodState,
  type ShownTicket,
  type SignInMethod,
  type TestRequest,
  type TestStep,
  type TicketForm,
  UnjudgedError,
} from '../method.ts'
import { ServerOrder } from '../servers.ts'
import { KDC_PORT, Kdc } from './kdc.ts'

const MAX_NAME = 255
const MAX_PASSWORD = 1024
const MAX_DETAIL = 400
/** Error codes that judge the person (RFC 4120 section 7.5.9); all others say that the KDC could not. */
const REFUSALS: Readonly<Record<number, MethodRefusal>> = {
  1: 'account_expired',
  6: 'unknown_user',
  12: 'not_allowed',
  18: 'account_disabled',
  23: 'password_expired',
  24: 'wrong_password',
  31: 'wrong_password',
}
const UNKNOWN_USER = 6
const PREAUTH_REQUIRED = 25
const SKEW = 37

export interface KerberosSettings {
  auth: Extract<ExternalAuth, { type: 'KERBEROS' }>
  secrets: { keytab?: Secret }
  /** Tickets that were shown, of all realms. */
  replays: Replays
  /** Milliseconds since the epoch. */
  now: () => number
  /** Told each failure of a server. */
  onFailure: (server: string, error: Error) => void
}

export class KerberosMethod implements SignInMethod {
  readonly #settings: KerberosSettings
  readonly #kdcs: Kdc[]
  readonly #order: ServerOrder<Kdc>
  readonly #closed = new AbortController()

  constructor(settings: KerberosSettings) {
    const { servers, timeoutMs } = settings.auth
    this.#settings = settings
    this.#kdcs = servers.map(({ host, port = KDC_PORT }) => new Kdc({ host, port, timeoutMs }))
    this.#order = new ServerOrder(this.#kdcs, settings.now)
  }

  async prove(attempt: MethodAttempt, password: Secret, signal: AbortSignal): Promise<MethodAnswer> {
    if (password.length === 0 || MAX_PASSWORD < password.length)
      return { result: 'rejected', reason: 'wrong_password' }
    if (!isPlainName(attempt.userName)) return { result: 'rejected', reason: 'unknown_user' }
    const failures: string[] = []
    const either = AbortSignal.any([signal, this.#closed.signal])
    const answer = await this.#order.first(
      (kdc) => this.#proveAt(kdc, attempt.userName, password, either),
      (kdc, error) => {
        failures.push(error.message)
        if (!either.aborted) this.#settings.onFailure(kdc.name, error)
      },
      either,
    )
    return (
      answer ?? {
        result: 'unavailable',
        reason: failures.join('; ') || 'no KDC is left to be asked just now',
      }
    )
  }

  async answer(
    _attempt: MethodAttempt,
    state: MethodState,
    _answers: readonly Secret[],
    _signal: AbortSignal,
  ): Promise<MethodAnswer> {
    state.close()
    return { result: 'rejected', reason: 'wrong_password' }
  }

  accept(token: Uint8Array, service: string, form: TicketForm): ShownTicket {
    const { auth, now, replays } = this.#settings
    const { realm } = auth.options
    const keys = this.#keysOfKind(service)
    try {
      const judge = form === 'spnego' ? acceptNegotiate : acceptToken
      const takesDelegated = form === 'bare'
      const accepted = judge(token, { realm, service, keys, replays, now, takesDelegated })
      const { answer, client, close, delegated, tokens } = accepted
      const [userName = '', ...rest] = client
      if (rest.length === 0 && isPlainName(userName))
        return {
          userName,
          ...(answer && { answer }),
          ...(delegated && { delegated }),
          isSigned: (...signed) => tokens.isSigned(...signed),
          close,
        }
      close()
      delegated?.key.bytes.fill(0)
      throw new Error('expected a ticket of a person, whose name has one component')
    } finally {
      wipe(keys)
    }
  }

  takes(service: string): boolean {
    try {
      const keys = this.#keysOfKind(service)
      wipe(keys)
      return keys.length > 0
    } catch {
      return false
    }
  }

  async ticketFor(first: HeldTicket, service: readonly string[], signal: AbortSignal): Promise<HeldTicket> {
    const { now, onFailure } = this.#settings
    const either = AbortSignal.any([signal, this.#closed.signal])
    // An error of a KDC is its answer: the next one would answer the same.
    const answer = await this.#order.first(
      (kdc) =>
        serviceTicket(first, service, { now, ask: (request) => kdc.ask(request, either) }).catch((error) => {
          if (error instanceof KdcRefusal) return error
          throw error
        }),
      (kdc, error) => {
        if (!either.aborted) onFailure(kdc.name, error)
      },
      either,
    )
    if (answer instanceof KdcRefusal) throw answer
    if (!answer) throw new Error('no KDC answers')
    return answer
  }

  async test({ userName, password }: TestRequest, signal: AbortSignal): Promise<TestStep[]> {
    const steps: TestStep[] = []
    for (const kdc of this.#kdcs) {
      let step: TestStep['step'] = 'answered'
      try {
        steps.push({ step, ok: true, detail: await this.#knock(kdc, signal) })
        step = 'bound'
        const keys = this.#keys()
        const versions = keys.map((one) => `version ${one.version}, ${one.key.type.name}`)
        wipe(keys)
        steps.push({ step, ok: true, detail: `keys of the keytab: ${versions.join('; ')}` })
        if (userName === undefined || password === undefined || password.length === 0) continue
        step = 'signed_in'
        if (!isPlainName(userName)) throw new Error('expected a name without /, @, \\ and control characters')
        const answer = await this.#proveAt(kdc, userName, password, signal)
        if (answer.result !== 'accepted')
          throw new Error(
            `expected a ticket, got ${answer.result === 'rejected' ? answer.reason : answer.result}`,
          )
        steps.push({ step, ok: true, detail: `signed in as ${userName}, and the KDC is proved`, groups: [] })
      } catch (error) {
        steps.push({ step, ok: false, detail: (error as Error).message.slice(0, MAX_DETAIL) })
      }
    }
    return steps
  }

  async close(): Promise<void> {
    this.#closed.abort()
  }

  async #proveAt(kdc: Kdc, userName: string, password: Secret, signal: AbortSignal): Promise<MethodAnswer> {
    const { auth, now } = this.#settings
    const { realm, servicePrincipal } = auth.options
    const keys = this.#keys()
    try {
      await kdc.prove(
        {
          realm,
          userName,
          password: password.reveal(),
          service: serviceOf(servicePrincipal, realm),
          keys,
          now,
        },
        signal,
      )
      return { result: 'accepted', person: { userName, groups: [] } }
    } catch (error) {
      const reason = error instanceof KdcRefusal && !error.isOfService ? REFUSALS[error.code] : undefined
      if (reason) return { result: 'rejected', reason }
      throw new Error(`${kdc.name}: ${explained(error as Error)}`)
    } finally {
      wipe(keys)
    }
  }

  /** @throws MalformedError, Error if the keytab is absent, or has no key of the service */
  #keys(): KeytabEntry[] {
    const { realm, servicePrincipal } = this.#settings.auth.options
    const service = serviceOf(servicePrincipal, realm).join('/')
    const own = this.#read(({ components }) => components.join('/') === service)
    if (own.length === 0) throw new Error(`the keytab has no AES key of ${service}@${realm}: export it again`)
    return own
  }

  /** @throws UnjudgedError if the keytab is absent or damaged */
  #keysOfKind(service: string): KeytabEntry[] {
    try {
      return this.#read(({ components }) => components.length === 2 && components[0] === service)
    } catch (error) {
      throw new UnjudgedError((error as Error).message)
    }
  }

  /** Reads the keys of the realm that fit. @throws MalformedError, Error if the keytab is absent */
  #read(fits: (entry: KeytabEntry) => boolean): KeytabEntry[] {
    const { auth, secrets } = this.#settings
    if (!secrets.keytab) throw new Error('expected a `keytab`, by which the KDC is proved, got none')
    const bytes = Buffer.from(secrets.keytab.revealText(), 'base64')
    const all = readKeytab(bytes)
    bytes.fill(0)
    const own = all.filter((one) => one.realm === auth.options.realm && fits(one))
    wipe(all.filter((one) => !own.includes(one)))
    return own
  }

  /** Asks for a name that no person has, which a KDC of any kind answers. */
  async #knock(kdc: Kdc, signal: AbortSignal): Promise<string> {
    const { auth, now } = this.#settings
    const answer = readKdcAnswer(await kdc.ask(strangerRequest(auth.options.realm, now()), signal), 'AS_REP')
    if (!('code' in answer)) throw new Error('expected an error for an unknown name, got a ticket')
    const refusal = new KdcRefusal(answer, now())
    if (answer.code !== UNKNOWN_USER && answer.code !== PREAUTH_REQUIRED)
      throw new Error(`${kdc.name}: ${explained(refusal)}`)
    const seconds = Math.round((answer.serverTime - now()) / 1000)
    return `${kdc.name} answers for ${auth.options.realm}; its clock differs by ${seconds} s`
  }
}

function explained(error: Error): string {
  if (error instanceof KdcRefusal && error.code === SKEW)
    return `${error.message}: set both clocks by the same time server`
  return error.message
}

/** Returns whether it is the name of a person in this realm: one component, as no escape is spoken. */
function isPlainName(name: string): boolean {
  return name.length > 0 && Buffer.byteLength(name) <= MAX_NAME && !/[/@\\\p{Cc}]/u.test(name)
}

function wipe(entries: readonly KeytabEntry[]): void {
  for (const { key } of entries) key.bytes.fill(0)
}
