/**
 * Checks that all signed JWTs of an issuer have in common (RFC 7515, RFC 7519): form, header, signature, issuer and times. Each
 * has a name, by which its refusal is known in the audit log. Reads no clock and no network.
 */
import { Buffer } from 'node:buffer'
import { type CompactVerifyGetKey, compactVerify, errors } from 'jose'

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

/** In their order; those of each kind of token come after them. */
export const SIGNED_CHECKS = [
  'form',
  'algorithm',
  'critical',
  'embedded_key',
  'type',
  'kid',
  'key',
  'signature',
  'issuer',
] as const
export const TIME_CHECKS = ['expiry', 'not_before', 'issued_at', 'age'] as const

/** A token that one of the checks refuses. Its message is for administrators. */
export class TokenError extends Error {
  override name = 'TokenError'
  readonly check: string

  constructor(check: string, detail: string) {
    super(`token refused by ${check}: ${detail}`)
    this.check = check
  }
}

export type Claims = Readonly<Record<string, unknown>>

export interface SignedRules {
  issuer: string
  /** Types that are accepted, in lower case; undefined for a token without one. */
  types: readonly (string | undefined)[]
}

/**
 * Returns the claims of a token that passes the checks of the form, the signature and the issuer. `key` finds the issuer's key.
 * @throws TokenError, and all that `key` throws
 */
export async function judgeSigned(
  token: string,
  { issuer, types }: SignedRules,
  key: CompactVerifyGetKey,
): Promise<Claims> {
  checkHeader(partOf(token, 0), types)
  const claims = readClaims(token)
  await checkSignature(token, key)
  const { iss } = claims
  if (iss !== issuer) throw new TokenError('issuer', `expected "${issuer}", got ${shown(iss)}`)
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

/** Values of `aud`, of which it may hold one or a list. */
export function audiencesOf({ aud }: Claims): unknown[] {
  return Array.isArray(aud) ? aud : [aud]
}

/** @throws TokenError unless `aud` holds the audience */
export function checkAudience(claims: Claims, audience: string): void {
  if (!audiencesOf(claims).includes(audience))
    throw new TokenError('audience', `expected "${audience}", got ${shown(claims['aud'])}`)
}

/** `now` and `maxAge`: seconds. @throws TokenError */
export function checkTimes({ exp, nbf, iat }: Claims, now: number, maxAge = MAX_AGE): void {
  if (!isTime(exp) || exp + CLOCK_SKEW <= now) throw new TokenError('expiry', `it ended at ${shown(exp)}`)
  if (nbf !== undefined && !(isTime(nbf) && nbf <= now + CLOCK_SKEW))
    throw new TokenError('not_before', `it begins at ${shown(nbf)}`)
  if (!isTime(iat) || now + CLOCK_SKEW < iat)
    throw new TokenError('issued_at', `it was made at ${shown(iat)}, after now or never`)
  if (iat + maxAge + CLOCK_SKEW < now)
    throw new TokenError('age', `it was made at ${iat}, over ${maxAge} s ago`)
}

/** @throws TokenError */
export function checkSubject({ sub }: Claims): void {
  if (!isText(sub)) throw new TokenError('subject', 'sub is missing or too long')
}

/** Returns the header (0) or the payload (1). @throws TokenError */
export function partOf(token: string, at: 0 | 1): Claims {
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

function checkHeader({ alg, crit, typ, kid, ...header }: Claims, types: SignedRules['types']): void {
  if (typeof alg !== 'string' || !ALGORITHMS.includes(alg))
    throw new TokenError('algorithm', `expected one of ${ALGORITHMS.join(', ')}, got ${shown(alg)}`)
  if (crit !== undefined)
    throw new TokenError('critical', `no critical header is understood, got ${shown(crit)}`)
  const brought = KEY_HEADERS.find((name) => Object.hasOwn(header, name))
  if (brought !== undefined)
    throw new TokenError('embedded_key', `"${brought}" is refused: keys are those of the issuer`)
  const type = typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : typ
  if (!types.includes(type as string | undefined))
    throw new TokenError('type', `expected typ ${types.map(shown).join(' or ')}, got ${shown(typ)}`)
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

export const isTime = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && 0 <= value

export const isText = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= MAX_TEXT

/** Quotes what came, cut short. */
export function shown(value: unknown): string {
  return (JSON.stringify(value) ?? 'nothing').slice(0, 100)
}
