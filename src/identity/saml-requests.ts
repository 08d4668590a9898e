/**
 * IDs of our requests to identity providers. An ID proves, without being kept, that this browser has begun here, when, and where
 * it goes at the end: it holds the HMAC of that by the secret of the browser's cookie, which another site neither reads nor sets.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'

/** Milliseconds within which the browser has to be back. */
export const REQUEST_MS = 30 * 60_000
const NONCE_BYTES = 16
/** An NCName, as xs:ID demands. */
const ID = /^_([A-Za-z0-9_-]{22})\.([a-z0-9]{1,10})\.([A-Za-z0-9_-]{43})$/

export interface Bound {
  /** Secret of the browser. */
  browser: string
  /** Id of the external authentication. */
  auth: string
  kind: 'sign_in' | 'sign_out'
  /** RelayState, which comes back beside the answer. */
  state: string
}

/** `now` in milliseconds since the epoch. */
export function requestId(bound: Bound, now: number, randomBytes: (size: number) => Uint8Array): string {
  const nonce = Buffer.from(randomBytes(NONCE_BYTES)).toString('base64url')
  const time = Math.floor(now / 1000).toString(36)
  return `_${nonce}.${time}.${macOf(bound, nonce, time)}`
}

/** Whether the ID is of a request that this browser has made, and not too long ago. */
export function isOwnRequest(id: string, bound: Bound, now: number): boolean {
  const [, nonce, time, mac] = ID.exec(id) ?? []
  if (nonce === undefined || time === undefined || mac === undefined) return false
  const begun = Number.parseInt(time, 36) * 1000
  if (now < begun - 1000 || begun + REQUEST_MS <= now) return false
  return timingSafeEqual(Buffer.from(mac), Buffer.from(macOf(bound, nonce, time)))
}

function macOf({ browser, auth, kind, state }: Bound, nonce: string, time: string): string {
  return createHmac('sha256', browser)
    .update(JSON.stringify([kind, auth, nonce, time, state]))
    .digest('base64url')
}
