/**
 * A ticket that a client has forwarded with its sign-in: by it the bastion signs in at targets as the person. It lives in
 * the broker's memory for as long as the connection, and its key in a `Secret`.
 */
import { Buffer } from 'node:buffer'
import type { Delegated } from '../kerberos/delegated.ts'
import { Initiator } from '../kerberos/initiator.ts'
import { KdcRefusal } from '../kerberos/refusals.ts'
import type { HeldTicket } from '../kerberos/requests.ts'
import { Secret } from '../model/secret.ts'
import type { SignInMethod } from './methods/method.ts'

/** Kind of the services that take the tickets. */
const SERVICE = 'host'
/** Milliseconds for the KDCs: the target waits for the rest of its sign-in. */
const MAX_MS = 10_000
const UNKNOWN_SERVICE = 7
const TICKET_EXPIRED = 32

/** The ticket opens nothing now. The message is for the user. */
export class ForwardingError extends Error {
  override name = 'ForwardingError'
}

export interface ForwardedTicketOptions {
  /** Its key is copied and wiped. */
  ticket: Delegated
  /** Returns the method of the server that has judged the sign-in. */
  method: () => Promise<SignInMethod>
  /** Milliseconds since the epoch. */
  now: () => number
}

/** The sign-in at one target, begun by `token`. */
export interface TargetContext {
  token: Uint8Array
  /** Signs the data once the target's answer has proved it. @throws ForwardingError */
  sign(answer: Uint8Array, data: Uint8Array): Uint8Array
  /** Wipes its keys. */
  close(): void
}

export class ForwardedTicket {
  readonly #options: ForwardedTicketOptions
  readonly #key: Secret
  #isClosed = false

  constructor(options: ForwardedTicketOptions) {
    const { bytes } = options.ticket.key
    this.#options = options
    this.#key = Secret.of(bytes)
    bytes.fill(0)
  }

  /** Gets a ticket for the target of that name, and shows it. @throws ForwardingError */
  async contextAt(host: string): Promise<TargetContext> {
    const { ticket, now } = this.#options
    const service = `${SERVICE}/${host.toLowerCase()}`
    if (this.#isClosed || ticket.endTime <= now())
      throw new ForwardingError(
        'the ticket that your client has forwarded has expired: get a new one, as by kinit -f',
      )
    const initiator = new Initiator({ ticket: await this.#ticketFor(service), now })
    return {
      token: initiator.start(),
      sign: (answer, data) => {
        try {
          return initiator.step(answer).sign(data)
        } catch {
          throw new ForwardingError(`the target has not proved that it is ${service}`)
        }
      },
      close: () => initiator.close(),
    }
  }

  /** Wipes the key. */
  close(): void {
    this.#isClosed = true
    this.#key.wipe()
  }

  async #ticketFor(service: string): Promise<HeldTicket> {
    const { ticket, method } = this.#options
    const unavailable = new ForwardingError(
      'no KDC of your ticket answers at the moment: try again in a few minutes',
    )
    const found = await method().catch(() => undefined)
    if (!found?.ticketFor) throw unavailable
    const own = { ...ticket, key: { type: ticket.key.type, bytes: Buffer.from(this.#key.reveal()) } }
    try {
      return await found.ticketFor(own, service.split('/'), AbortSignal.timeout(MAX_MS))
    } catch (error) {
      if (!(error instanceof KdcRefusal)) throw unavailable
      if (error.code === UNKNOWN_SERVICE)
        throw new ForwardingError(`the KDC of your ticket knows no service ${service}`)
      if (error.code === TICKET_EXPIRED)
        throw new ForwardingError(
          'the ticket that your client has forwarded has expired: get a new one, as by kinit -f',
        )
      throw new ForwardingError(`the KDC gives no ticket for ${service} (error ${error.code})`)
    } finally {
      own.key.bytes.fill(0)
    }
  }
}
