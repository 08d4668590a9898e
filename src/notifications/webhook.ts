/**
 * Events as signed requests: `POST` with a JSON object in the names of the Elastic Common Schema.
 *
 *     X-Sallyport-Event: CODE
 *     X-Sallyport-Delivery: ROW
 *     X-Sallyport-Timestamp: SECONDS
 *     X-Sallyport-Signature: v1=HEX
 *
 * The signature is HMAC-SHA256 over `SECONDS.BODY`, so that a request can be neither forged, nor replayed later.
 * Redirects are not followed, and nothing of an answer but its status is used or shown.
 */
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:https'
import { isIP } from 'node:net'
import { connect } from 'node:tls'
import type { StoredEvent } from '../audit/chain.ts'
import type { Maker } from '../audit/sinks/formats/cef.ts'
import { ecs } from '../audit/sinks/formats/ecs.ts'
import type { WebhookOptions } from '../model/notifications.ts'
import type { Secret } from '../model/secret.ts'
import { type Barred, lookupOf, requireAllowed } from './addresses.ts'
import { DeliveryRefused, type NotificationSender } from './sender.ts'

const TIMEOUT_MS = 10_000
const MAX_HEADERS = 16 * 1024
const HTTPS_PORT = 443
const NO_SECRET = 'signing_secret is not set'
// NODE_TLS_REJECT_UNAUTHORIZED would decide otherwise.
const TLS = { minVersion: 'TLSv1.2', rejectUnauthorized: true } as const
/** Statuses by which a receiver asks for a later attempt. */
const LATER = [408, 425, 429]

export interface WebhookDeps {
  options: WebhookOptions
  /** Absent if it could not be opened: nothing is sent. */
  secret: Secret | undefined
  maker: Maker
  /** Milliseconds since the epoch. */
  now: () => number
  isBarred: Barred
}

export class WebhookSender implements NotificationSender {
  readonly most = 1
  readonly #deps: WebhookDeps

  constructor(deps: WebhookDeps) {
    this.#deps = deps
  }

  async send(events: readonly StoredEvent[], signal: AbortSignal): Promise<void> {
    for (const event of events) await this.#post(event, signal)
  }

  async reach(signal: AbortSignal): Promise<void> {
    const { options, secret, isBarred } = this.#deps
    if (!secret) throw new Error(NO_SECRET)
    const url = new URL(options.url)
    requireAllowed(url.hostname, isBarred)
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
    const socket = connect({
      host,
      port: url.port === '' ? HTTPS_PORT : Number(url.port),
      lookup: lookupOf(isBarred),
      ...TLS,
      ...(isIP(host) === 0 && { servername: host }),
      ...(options.caCertificates !== undefined && { ca: options.caCertificates }),
    })
    try {
      await once(socket, 'secureConnect', { signal })
    } finally {
      socket.destroy()
    }
  }

  async #post(event: StoredEvent, signal: AbortSignal): Promise<void> {
    const { options, secret, maker, now, isBarred } = this.#deps
    if (!secret) throw new Error(NO_SECRET)
    const url = new URL(options.url)
    requireAllowed(url.hostname, isBarred)
    const body = ecs(event, maker)
    const seconds = Math.floor(now() / 1000)
    const late = AbortSignal.timeout(TIMEOUT_MS)
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    const call = request(url, {
      agent: false,
      method: 'POST',
      lookup: lookupOf(isBarred),
      maxHeaderSize: MAX_HEADERS,
      ...TLS,
      signal: AbortSignal.any([late, signal]),
      ...(options.caCertificates !== undefined && { ca: options.caCertificates }),
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': 'sallyport',
        'x-sallyport-event': event.code,
        'x-sallyport-delivery': event.sequence,
        'x-sallyport-timestamp': seconds,
        'x-sallyport-signature': signatureOf(secret, seconds, body),
      },
    })
    call.on('response', ({ statusCode = 0 }) => resolve(statusCode))
    call.on('error', reject)
    call.end(body)
    try {
      judge(await promise)
    } catch (error) {
      if (late.aborted) throw new Error(`no answer within ${TIMEOUT_MS / 1000} s`)
      throw error
    } finally {
      call.destroy()
    }
  }
}

/** Returns `v1=HEX`, as the receiver computes it. */
export function signatureOf(secret: Secret, seconds: number, body: string): string {
  return `v1=${createHmac('sha256', secret.reveal()).update(`${seconds}.${body}`).digest('hex')}`
}

/** @throws DeliveryRefused, or Error for an answer that may be another one later */
function judge(status: number): void {
  if (status >= 200 && status < 300) return
  const reason = `expected status 2xx, got ${status}`
  if (status >= 500 || LATER.includes(status)) throw new Error(reason)
  throw new DeliveryRefused(status >= 300 && status < 400 ? `${reason}: redirects are not followed` : reason)
}
