/** Judges ID Tokens (OpenID Connect Core 1.0 section 3.1.3.7). Reads no clock and no network. */
import { createHash } from 'node:crypto'
import type { CompactVerifyGetKey } from 'jose'
import type { OidcClient } from '../../../model/external-auths.ts'
import {
  audiencesOf,
  CLOCK_SKEW,
  type Claims,
  checkAudience,
  checkSubject,
  checkTimes,
  isTime,
  judgeSigned,
  partOf,
  SIGNED_CHECKS,
  shown,
  TIME_CHECKS,
  TokenError,
} from './signed.ts'

/** In their order. */
export const ID_TOKEN_CHECKS = [
  ...SIGNED_CHECKS,
  'audience',
  'authorized_party',
  ...TIME_CHECKS,
  'subject',
  'access_token',
  'nonce',
  'authentication_time',
  'context',
  'methods',
] as const

export type IdTokenRules = { issuer: string } & Pick<OidcClient, 'id' | 'acrValues' | 'amrValues' | 'maxAge'>

/** Values that the token has to repeat. */
export interface Expected {
  /** Sent with the authorization request; absent for a token that comes with a refresh, whose sign-in was judged before. */
  nonce?: string
  /** The access token that came along. */
  accessToken?: string
}

/**
 * Returns the claims of a token that passes every check. `key` finds the issuer's key; `now`: milliseconds since the epoch.
 * @throws TokenError, and all that `key` throws
 */
export async function judgeIdToken(
  token: string,
  rules: IdTokenRules,
  expected: Expected,
  key: CompactVerifyGetKey,
  now: number,
): Promise<Claims> {
  const claims = await judgeSigned(token, { issuer: rules.issuer, types: [undefined, 'jwt'] }, key)
  const seconds = Math.floor(now / 1000)
  checkAudience(claims, rules.id)
  const { azp } = claims
  const isShared = audiencesOf(claims).length > 1
  if (azp === undefined ? isShared : azp !== rules.id)
    throw new TokenError('authorized_party', `expected azp "${rules.id}", got ${shown(azp)}`)
  checkTimes(claims, seconds)
  checkSubject(claims)
  checkAccessToken(claims, expected.accessToken, algorithmOf(token))
  if (expected.nonce === undefined) return claims
  if (claims['nonce'] !== expected.nonce)
    throw new TokenError('nonce', 'it is of another authorization request')
  checkAuthentication(claims, rules, seconds)
  return claims
}

const algorithmOf = (token: string): string => String(partOf(token, 0)['alg'])

/** Compares `at_hash`: the left half of the hash that the signature's algorithm has (section 3.1.3.6). */
function checkAccessToken(
  { at_hash: hash }: Claims,
  accessToken: string | undefined,
  algorithm: string,
): void {
  if (hash === undefined || accessToken === undefined) return
  const bits = /(256|384|512)$/.exec(algorithm)?.[1] ?? '512'
  const digest = createHash(`sha${bits}`).update(accessToken).digest()
  if (hash !== digest.subarray(0, digest.length / 2).toString('base64url'))
    throw new TokenError('access_token', 'at_hash is that of another access token')
}

/** `now`: seconds since the epoch. */
function checkAuthentication(
  { auth_time: time, acr, amr }: Claims,
  { acrValues, amrValues, maxAge }: IdTokenRules,
  now: number,
): void {
  if (time !== undefined && !(isTime(time) && time <= now + CLOCK_SKEW))
    throw new TokenError('authentication_time', `auth_time is ${shown(time)}, after now or none`)
  if (maxAge !== undefined && !(isTime(time) && now <= time + maxAge + CLOCK_SKEW))
    throw new TokenError('authentication_time', `expected one at most ${maxAge} s ago, got ${shown(time)}`)
  if (acrValues.length > 0 && !(typeof acr === 'string' && acrValues.includes(acr)))
    throw new TokenError('context', `expected acr ${acrValues.join(' or ')}, got ${shown(acr)}`)
  const methods: unknown[] = Array.isArray(amr) ? amr : []
  const missing = amrValues.find((one) => !methods.includes(one))
  if (missing !== undefined)
    throw new TokenError('methods', `expected amr with ${missing}, got ${shown(amr)}`)
}
