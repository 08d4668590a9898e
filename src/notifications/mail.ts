/**
 * Events as mail: those of one delivery together, as plain text. Subject and addresses are made of codes and of
 * checked addresses only; whatever a user or a target chose stands in the body.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createTransport, type Transporter } from 'nodemailer'
import type { StoredEvent } from '../audit/chain.ts'
import { severityOf } from '../audit/events/catalogue.ts'
import { sentenceOf, timestampOf } from '../audit/sentence.ts'
import type { MailOptions } from '../model/notifications.ts'
import type { Secret } from '../model/secret.ts'
import { type Barred, lookupOf, requireAllowed } from './addresses.ts'
import { DeliveryRefused, type NotificationSender } from './sender.ts'

/** For each step of the server. */
const TIMEOUT_MS = 15_000
/** For all of a mail: a server that says a letter now and then keeps to the limit of each step. */
const MAIL_MS = 60_000

export interface MailDeps {
  options: MailOptions
  /** Password for SMTP AUTH; absent without a user name. */
  secret: Secret | undefined
  /** Name of this machine, as the server is greeted. */
  hostname: string
  isBarred: Barred
  /** Milliseconds for a mail, other than MAIL_MS. */
  limitMs?: number
}

export class MailSender implements NotificationSender {
  readonly most = 50
  readonly #deps: MailDeps

  constructor(deps: MailDeps) {
    this.#deps = deps
  }

  async send(events: readonly StoredEvent[], signal: AbortSignal): Promise<void> {
    const { options, limitMs = MAIL_MS } = this.#deps
    const { from, to } = options
    const transport = this.#transport({ host: await this.#address() })
    const late = AbortSignal.timeout(limitMs)
    try {
      await transport.sendMail({
        ...{ from, to, subject: subjectOf(events), text: bodyOf(events) },
        signal: AbortSignal.any([late, signal]),
      })
    } catch (error) {
      if (late.aborted) throw new Error(`the mail was not taken within ${limitMs / 1000} s`)
      throw withoutItsWords(error as MailError)
    }
  }

  async reach(signal: AbortSignal): Promise<void> {
    const { port } = this.#deps.options
    // nodemailer's own could not be destroyed: a server that says a letter now and then would hold it.
    const connection = connect({ host: await this.#address(), port })
    const destroy = () => connection.destroy()
    signal.addEventListener('abort', destroy)
    try {
      await once(connection, 'connect', { signal })
      await this.#transport({ connection }).verify()
      // It says QUIT, and waits for the server to close.
      connection.unref()
    } catch (error) {
      connection.destroy()
      const { code = 'ESOCKET', responseCode } = error as MailError
      throw new Error(`no sign-in: ${codeText(code, responseCode)}`)
    } finally {
      signal.removeEventListener('abort', destroy)
    }
  }

  async #address(): Promise<string> {
    const { options, isBarred } = this.#deps
    requireAllowed(options.host, isBarred)
    return await addressOf(options.host, isBarred)
  }

  #transport(where: { host: string } | { connection: Socket }): Transporter {
    const { options, secret, hostname } = this.#deps
    const { host, port, security, userName, caCertificates: ca } = options
    return createTransport({
      ...where,
      port,
      name: hostname,
      secure: security === 'tls',
      requireTLS: security === 'starttls',
      ignoreTLS: security === 'none',
      connectionTimeout: TIMEOUT_MS,
      greetingTimeout: TIMEOUT_MS,
      socketTimeout: TIMEOUT_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
      tls: {
        servername: host,
        minVersion: 'TLSv1.2',
        rejectUnauthorized: true,
        ...(ca !== undefined && { ca }),
      },
      ...(userName !== undefined && { auth: { user: userName, pass: secret?.revealText() ?? '' } }),
    })
  }
}

/** nodemailer's errors: `code` is its own, `responseCode` the server's. */
interface MailError extends Error {
  code?: string
  responseCode?: number
}

/** Returns an error without the text of the server, which may be any service of the network. */
function withoutItsWords({ code = 'ESOCKET', responseCode }: MailError): Error {
  const reason = `the mail was not taken: ${codeText(code, responseCode)}`
  // RFC 5321 4.2.1: 5yz is for good.
  const isForGood = responseCode !== undefined && responseCode >= 500 && code !== 'EAUTH'
  return isForGood ? new DeliveryRefused(reason) : new Error(reason)
}

const codeText = (code: string, responseCode?: number) =>
  `${code}${responseCode === undefined ? '' : `, reply ${responseCode}`}`

function addressOf(host: string, isBarred: Barred): Promise<string> {
  return new Promise((resolve, reject) =>
    lookupOf(isBarred)(host, {}, (error, address) => (error ? reject(error) : resolve(String(address)))),
  )
}

export function subjectOf(events: readonly StoredEvent[]): string {
  const [first] = events
  if (!first || events.length > 1) return `sallyport: ${events.length} events`
  return `sallyport: ${severityOf(first)}: ${first.code}`
}

export function bodyOf(events: readonly StoredEvent[]): string {
  return events
    .map((event) => {
      const fields = Object.entries(event.fields).map(([name, value]) => `  ${name}: ${value}`)
      const head = `${timestampOf(event)} ${severityOf(event)} ${event.code}, row ${event.sequence}`
      return [head, sentenceOf(event), ...fields, ''].join('\n')
    })
    .join('\n')
}
