/** Judges JWTs that are shown as access tokens (RFC 9068). Reads no clock and no network. */
import type { CompactVerifyGetKey } from 'jose'
import type { OidcOptions } from '../../../model/external-auths.ts'
import {
  type Claims,
  checkAudience,
  checkSubject,
  checkTimes,
  claimAt,
  isText,
  judgeSigned,
  SIGNED_CHECKS,
  shown,
  TIME_CHECKS,
  TokenError,
} from './signed.ts'

/** Claims that ID tokens have and access tokens do not. */
const ID_TOKEN_CLAIMS = ['nonce', 'at_hash', 'c_hash']

/** In their order. */
export const TOKEN_CHECKS = [
  ...SIGNED_CHECKS,
  'audience',
  ...TIME_CHECKS,
  'subject',
  'client',
  'token_id',
  'id_token',
  'bound_claim',
] as const

export type TokenRules = Pick<OidcOptions, 'issuer' | 'audience' | 'tokenType' | 'boundClaims'>

/**
 * Returns the claims of a token that passes every check. `key` finds the issuer's key; `now`: milliseconds since the epoch.
 * @throws TokenError, and all that `key` throws
 */
export async function judgeToken(
  token: string,
  rules: TokenRules,
  key: CompactVerifyGetKey,
  now: number,
): Promise<Claims> {
  const claims = await judgeSignature(token, rules, key)
  checkAccess(claims, rules, now)
  return claims
}

/** Returns the claims of a token that was signed by the issuer, for `checkAccess`. @throws as `judgeToken` does */
export async function judgeSignature(
  token: string,
  { issuer, tokenType }: Pick<TokenRules, 'issuer' | 'tokenType'>,
  key: CompactVerifyGetKey,
): Promise<Claims> {
  const types = tokenType === 'jwt' ? [undefined, 'jwt', 'at+jwt'] : ['at+jwt']
  return await judgeSigned(token, { issuer, types }, key)
}

/**
 * Checks what an issuer says of an opaque token (RFC 7662 section 2.2), which it knows itself. `now`: milliseconds since the
 * epoch. @throws TokenError
 */
export function checkIntrospected(claims: Claims, rules: TokenRules, now: number): void {
  const { active, iss, iat = 0 } = claims
  if (active !== true) throw new TokenError('active', 'the issuer does not know it, or not any more')
  if (iss !== undefined && iss !== rules.issuer)
    throw new TokenError('issuer', `expected "${rules.issuer}", got ${shown(iss)}`)
  checkAudience(claims, rules.audience)
  checkTimes({ ...claims, iat }, Math.floor(now / 1000), Number.POSITIVE_INFINITY)
  checkSubject(claims)
  checkBound(claims, rules.boundClaims)
}

/** Checks the claims of a token whose signature is known to be right. `now`: milliseconds since the epoch. @throws TokenError */
export function checkAccess(claims: Claims, rules: TokenRules, now: number): void {
  checkAudience(claims, rules.audience)
  checkTimes(claims, Math.floor(now / 1000))
  checkSubject(claims)
  if (rules.tokenType === 'at+jwt') {
    if (!isText(claims['client_id'])) throw new TokenError('client', 'client_id is missing or too long')
    if (!isText(claims['jti'])) throw new TokenError('token_id', 'jti is missing or too long')
  } else {
    const own = ID_TOKEN_CLAIMS.find((name) => Object.hasOwn(claims, name))
    if (own !== undefined) throw new TokenError('id_token', `"${own}" shows that it is an ID token`)
  }
  checkBound(claims, rules.boundClaims)
}

/** @throws TokenError */
export function checkBound(claims: Claims, boundClaims: readonly string[]): void {
  for (const [claim, values] of valuesOf(boundClaims)) {
    const value = claimAt(claims, claim)
    const isSimple = ['string', 'number', 'boolean'].includes(typeof value)
    if (!isSimple || !values.includes(String(value)))
      throw new TokenError('bound_claim', `${claim} is ${shown(value)}`)
  }
}

/** Splits `claim=value`. A claim that comes several times may have any of the values. */
export function valuesOf(bound: readonly string[]): Map<string, string[]> {
  const values = new Map<string, string[]>()
  for (const one of bound) {
    const at = one.indexOf('=')
    const claim = one.slice(0, at)
    values.set(claim, [...(values.get(claim) ?? []), one.slice(at + 1)])
  }
  return values
}
