/** Judges Logout Tokens (OpenID Connect Back-Channel Logout 1.0 section 2.6). Reads no clock and no network. */
import type { CompactVerifyGetKey } from 'jose'
import {
  checkAudience,
  checkTimes,
  isText,
  judgeSigned,
  SIGNED_CHECKS,
  shown,
  TIME_CHECKS,
  TokenError,
} from './signed.ts'

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
/** Seconds after which a Logout Token is too old, whatever its end. */
export const MAX_LOGOUT_AGE = 300
/** Ids of tokens that are remembered; those of ten minutes are enough. */
const MAX_IDS = 10_000
const IDS_MS = 600_000

/** In their order. */
export const LOGOUT_CHECKS = [
  ...SIGNED_CHECKS,
  'audience',
  ...TIME_CHECKS,
  'session',
  'event',
  'no_nonce',
  'token_id',
  'replay',
] as const

/** Sessions that a provider ends: by its id of the person, of the session, or both. */
export interface LoggedOut {
  subject?: string
  sid?: string
}

/** Judges the tokens of one client of an issuer. */
export class LogoutTokens {
  readonly #rules: { issuer: string; clientId: string }
  /** Id → end in milliseconds since the epoch, oldest first. */
  readonly #ids = new Map<string, number>()

  constructor(rules: { issuer: string; clientId: string }) {
    this.#rules = rules
  }

  /**
   * Returns what a token ends, once, if it passes every check. `now`: milliseconds since the epoch.
   * @throws TokenError, and all that `key` throws
   */
  async judge(token: string, key: CompactVerifyGetKey, now: number): Promise<LoggedOut> {
    const { issuer, clientId } = this.#rules
    const claims = await judgeSigned(token, { issuer, types: [undefined, 'jwt', 'logout+jwt'] }, key)
    checkAudience(claims, clientId)
    checkTimes(claims, Math.floor(now / 1000), MAX_LOGOUT_AGE)
    const { sub, sid, events, jti } = claims
    const isNamed = (value: unknown) => value === undefined || isText(value)
    if ((sub === undefined && sid === undefined) || !isNamed(sub) || !isNamed(sid))
      throw new TokenError('session', 'expected sub, sid or both')
    const event =
      typeof events === 'object' && events !== null ? (events as Record<string, unknown>)[EVENT] : undefined
    if (typeof event !== 'object' || event === null || Array.isArray(event))
      throw new TokenError('event', `expected the event of a logout, got ${shown(events)}`)
    if (Object.hasOwn(claims, 'nonce')) throw new TokenError('no_nonce', 'it has a nonce, as an ID Token has')
    if (!isText(jti)) throw new TokenError('token_id', 'jti is missing or too long')
    if (!this.#isNew(jti, now)) throw new TokenError('replay', `the token ${shown(jti)} has come before`)
    return {
      ...(typeof sub === 'string' && { subject: sub }),
      ...(typeof sid === 'string' && { sid }),
    }
  }

  #isNew(id: string, now: number): boolean {
    for (const [one, until] of this.#ids) {
      if (now < until && this.#ids.size < MAX_IDS) break
      this.#ids.delete(one)
    }
    if (this.#ids.has(id)) return false
    this.#ids.set(id, now + IDS_MS)
    return true
  }
}
