/**
 * Judges JWTs that are shown as access tokens (RFC 9068, RFC 7519): each check has a name, by which its refusal is known in
 * the audit log. Reads no clock and no network.
 */
import { Buffer } from 'node:buffer'
import { type CompactVerifyGetKey, compactVerify, errors } from 'jose'
import type { OidcOptions } from '../../../model/external-auths.ts'

/** Characters of a token. */
export const MAX_TOKEN = 16_384
const MAX_TEXT = 255
/** Seconds by which the clocks of the issuer and the bastion may differ. */
export const CLOCK_SKEW = 30
/** Seconds after which a token is too old, whatever its end. */
export const MAX_AGE = 86_400
/** With a public key only: neither `none` nor a code that can be computed from the public key. */
export const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
]
/** Headers that bring a key along, or say where one is: keys are those of the issuer only. */
const KEY_HEADERS = ['jku', 'jwk', 'x5u', 'x5c']
/** Claims that ID tokens have and access tokens do not. */
const ID_TOKEN_CLAIMS = ['nonce', 'at_hash', 'c_hash']

/** In their order. */
export const TOKEN_CHECKS = [
  'form',
  'algorithm',
  'critical',
  'embedded_key',
  'type',
  'kid',
  'key',
  'signature',
  'issuer',
  'audience',
  'expiry',
  'not_before',
  'issued_at',
  'age',
  'subject',
  'client',
  'token_id',
  'id_token',
  'bound_claim',
] as const
export type TokenCheck = (typeof TOKEN_CHECKS)[number]

/** A token that one of the checks refuses. Its message is for administrators. */
export class TokenError extends Error {
  override name = 'TokenError'
  readonly check: TokenCheck

  constructor(check: TokenCheck, detail: string) {
    super(`token refused by ${check}: ${detail}`)
    this.check = check
  }
}

export type Claims = Readonly<Record<string, unknown>>

export type TokenRules = Pick<OidcOptions, 'issuer' | 'audience' | 'tokenType' | 'boundClaims'>

/**
 * Returns the claims of a token that passes every check. `key` finds the issuer's key; `now`: milliseconds since the epoch.
 * @throws TokenError, and whatever `key` throws
 */
export async function judgeToken(
  token: string,
  rules: TokenRules,
  key: CompactVerifyGetKey,
  now: number,
): Promise<Claims> {
  checkHeader(partOf(token, 0), rules)
  const claims = readClaims(token)
  await checkSignature(token, key)
  checkClaims(claims, rules, Math.floor(now / 1000))
  return claims
}

/** Returns the claims of a token, which nothing has proved yet. @throws TokenError */
export function readClaims(token: string): Claims {
  return partOf(token, 1)
}

/** Returns a claim by its name, or by the names on the way to it with dots between. */
export function claimAt(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name]
  let value: unknown = claims
  for (const part of name.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined
    value = (value as Claims)[part]
  }
  return value
}

function partOf(token: string, at: 0 | 1): Claims {
  const parts = token.split('.', 6)
  if (MAX_TOKEN < token.length) throw new TokenError('form', `longer than ${MAX_TOKEN} characters`)
  if (parts.length !== 3 || !parts.every((part) => /^[A-Za-z0-9_-]+$/.test(part)))
    throw new TokenError('form', 'expected three parts of base64url: a signed JWT')
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(parts[at]!, 'base64url'))
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Claims
  } catch {
    // Said below.
  }
  throw new TokenError('form', `the ${at === 0 ? 'header' : 'payload'} is no JSON object`)
}

function checkHeader(header: Claims, { tokenType }: TokenRules): void {
  const { alg, typ, kid } = header
  if (typeof alg !== 'string' || !ALGORITHMS.includes(alg))
    throw new TokenError('algorithm', `expected one of ${ALGORITHMS.join(', ')}, got ${shown(alg)}`)
  if (Object.hasOwn(header, 'crit'))
    throw new TokenError('critical', `no critical header is understood, got ${shown(header['crit'])}`)
  const brought = KEY_HEADERS.find((name) => Object.hasOwn(header, name))
  if (brought !== undefined)
    throw new TokenError('embedded_key', `"${brought}" is refused: keys are those of the issuer`)
  const type = typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : typ
  const isRight = type === 'at+jwt' || (tokenType === 'jwt' && (type === undefined || type === 'jwt'))
  if (!isRight) throw new TokenError('type', `expected typ "${tokenType}", got ${shown(typ)}`)
  if (typeof kid !== 'string' || kid === '' || MAX_TEXT < kid.length)
    throw new TokenError('kid', 'the header does not say which key has signed')
}

async function checkSignature(token: string, key: CompactVerifyGetKey): Promise<void> {
  try {
    await compactVerify(token, key, { algorithms: ALGORITHMS })
  } catch (error) {
    if (error instanceof errors.JWSSignatureVerificationFailed)
      throw new TokenError('signature', "it is not that of the issuer's key")
    // jose refuses keys that do not fit, such as RSA below 2048 bits, by a TypeError.
    if (error instanceof errors.JOSEError || error instanceof TypeError)
      throw new TokenError('key', error.message)
    throw error
  }
}

/** `now`: seconds since the epoch. */
function checkClaims(claims: Claims, rules: TokenRules, now: number): void {
  const { iss, aud, exp, nbf, iat, sub } = claims
  if (iss !== rules.issuer) throw new TokenError('issuer', `expected "${rules.issuer}", got ${shown(iss)}`)
  const audiences: unknown[] = Array.isArray(aud) ? aud : [aud]
  if (!audiences.includes(rules.audience))
    throw new TokenError('audience', `expected "${rules.audience}", got ${shown(aud)}`)
  if (!isTime(exp) || exp + CLOCK_SKEW <= now) throw new TokenError('expiry', `it ended at ${shown(exp)}`)
  if (nbf !== undefined && !(isTime(nbf) && nbf <= now + CLOCK_SKEW))
    throw new TokenError('not_before', `it begins at ${shown(nbf)}`)
  if (!isTime(iat) || now + CLOCK_SKEW < iat)
    throw new TokenError('issued_at', `it was made at ${shown(iat)}, after now or never`)
  if (iat + MAX_AGE + CLOCK_SKEW < now) throw new TokenError('age', `it was made at ${iat}, over a day ago`)
  if (!isText(sub)) throw new TokenError('subject', 'sub is missing or too long')
  if (rules.tokenType === 'at+jwt') {
    if (!isText(claims['client_id'])) throw new TokenError('client', 'client_id is missing or too long')
    if (!isText(claims['jti'])) throw new TokenError('token_id', 'jti is missing or too long')
  } else {
    const own = ID_TOKEN_CLAIMS.find((name) => Object.hasOwn(claims, name))
    if (own !== undefined) throw new TokenError('id_token', `"${own}" shows that it is an ID token`)
  }
  for (const [claim, values] of valuesOf(rules.boundClaims)) {
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

const isTime = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && 0 <= value

const isText = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= MAX_TEXT

/** Quotes what came, cut short. */
function shown(value: unknown): string {
  return (JSON.stringify(value) ?? 'nothing').slice(0, 100)
}
