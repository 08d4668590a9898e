/** The client's side of Kerberos as a mechanism of the GSS-API (RFC 4121): a ticket is shown, and the service proved. */
import type { Buffer } from 'node:buffer'
import { randomBytes, randomInt } from 'node:crypto'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { IntegrityError } from './encryption.ts'
import { type ApReply, MUTUAL, readApReply } from './exchange.ts'
import { flagsChecksum, frameOf, type GssFlags, KIND, readFrame } from './gss.ts'
import { MessageTokens } from './message-tokens.ts'
import { apRequest, type Key, readError, USAGE } from './messages.ts'
import { ServiceRefusal, UnprovedServiceError } from './refusals.ts'
import type { HeldTicket } from './requests.ts'

/** Our numbers are small: some peers read them as signed ones. */
const MAX_FIRST = 2 ** 30

export interface InitiatorOptions extends GssFlags {
  /** A ticket for the service. Its key is wiped once the service has answered. */
  ticket: HeldTicket
  /** Milliseconds since the epoch. */
  now: () => number
}

export class Initiator {
  readonly #options: InitiatorOptions
  readonly #key: Key
  readonly #first = randomInt(MAX_FIRST)
  #shownAt = 0
  #tokens: MessageTokens | undefined

  constructor(options: InitiatorOptions) {
    const { type } = options.ticket.key
    this.#options = options
    this.#key = { type, bytes: randomBytes(type.keyBytes) }
  }

  /** Messages under the keys of the context, once the service is proved. */
  get tokens(): MessageTokens | undefined {
    return this.#tokens
  }

  /** Returns the token that shows the ticket. */
  start(): Buffer {
    const { ticket, now } = this.#options
    this.#shownAt = now()
    const request = apRequest(ticket, {
      usage: USAGE.AP_AUTHENTICATOR,
      options: MUTUAL,
      checksum: flagsChecksum(this.#options),
      now: this.#shownAt,
      key: this.#key,
      first: this.#first,
    })
    return frameOf(KIND.AP_REQ, request)
  }

  /** Receives the service's answer. @throws ServiceRefusal, UnprovedServiceError, MalformedError */
  step(token: Uint8Array): MessageTokens {
    if (this.#tokens) throw new MalformedError('Kerberos: no token was expected after the service was proved')
    const { kind, message } = readFrame(token)
    if (kind === KIND.ERROR) throw new ServiceRefusal(readError(message), this.#options.now())
    if (kind !== KIND.AP_REP) throw new MalformedError(`Kerberos: an AP-REP was expected, got kind ${kind}`)
    const { key, first } = this.#proved(message)
    this.#options.ticket.key.bytes.fill(0)
    if (key) this.#key.bytes.fill(0)
    this.#tokens = new MessageTokens({
      side: 'initiator',
      key: key ?? this.#key,
      isAcceptorKey: key !== undefined,
      first: { own: this.#first, peer: first },
    })
    return this.#tokens
  }

  /** Wipes all keys. */
  close(): void {
    this.#options.ticket.key.bytes.fill(0)
    this.#key.bytes.fill(0)
    this.#tokens?.close()
  }

  #proved(message: Uint8Array): ApReply {
    let reply: ApReply
    try {
      reply = readApReply(message, this.#options.ticket.key)
    } catch (error) {
      if (error instanceof IntegrityError)
        throw new UnprovedServiceError("the service's answer is not by the key of the ticket")
      throw error
    }
    if (reply.time + reply.micros / 1000 !== this.#shownAt) {
      reply.key?.bytes.fill(0)
      throw new UnprovedServiceError("the service's answer is to another proof than ours")
    }
    return reply
  }
}
