/**
 * Events as mail: those of one delivery together, as plain text. Subject and addresses are made of codes and of
 * checked addresses only; whatever a user or a target chose stands in the body.
 */
import { createTransport } from 'nodemailer'
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
    const { options, secret, hostname, isBarred, limitMs = MAIL_MS } = this.#deps
    const { host, port, security, userName, from, to, caCertificates: ca } = options
    requireAllowed(host, isBarred)
    const address = await addressOf(host, isBarred)
    const transport = createTransport({
      host: address,
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
}

/** nodemailer's errors: `code` is its own, `responseCode` the server's. */
interface MailError extends Error {
  code?: string
  responseCode?: number
}

/** Returns an error without the text of the server, which may be any service of the network. */
function withoutItsWords({ code = 'ESOCKET', responseCode }: MailError): Error {
  const reason = `the mail was not taken: ${code}${responseCode === undefined ? '' : `, reply ${responseCode}`}`
  // RFC 5321 4.2.1: 5yz is for good.
  const isForGood = responseCode !== undefined && responseCode >= 500 && code !== 'EAUTH'
  return isForGood ? new DeliveryRefused(reason) : new Error(reason)
}

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
