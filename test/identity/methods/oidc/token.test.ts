/** Access tokens: a sound one, and each defect alone and beside each other one. */
import { createSign, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { createLocalJWKSet } from 'jose'
import { describe, expect, test } from 'vitest'
import { CLOCK_SKEW, MAX_AGE, MAX_TOKEN, TokenError } from '../../../../src/identity/methods/oidc/signed.ts'
import { judgeToken, TOKEN_CHECKS, type TokenRules } from '../../../../src/identity/methods/oidc/token.ts'

type Json = Record<string, unknown>
interface Parts {
  header: Json
  claims: Json
  key: KeyObject
  tokenType: TokenRules['tokenType']
  edit: (token: string) => string
}

const NOW = Date.UTC(2031, 0, 1)
const SECONDS = NOW / 1000
const RULES: TokenRules = {
  issuer: 'https://login.lab/realm',
  audience: 'bastion',
  tokenType: 'at+jwt',
  boundClaims: ['repository=acme/app', 'ref=refs/heads/main', 'ref=refs/heads/next', 'deep.name=7'],
}

const own = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const find = createLocalJWKSet({
  keys: [{ ...(own.publicKey.export({ format: 'jwk' }) as { kty: 'EC' }), kid: 'k1', alg: 'ES256' }],
})

const sound = (): Parts => ({
  header: { alg: 'ES256', typ: 'at+jwt', kid: 'k1' },
  claims: {
    iss: RULES.issuer,
    aud: ['other', 'bastion'],
    sub: 'u1',
    client_id: 'c1',
    jti: 'j1',
    iat: SECONDS - 60,
    nbf: SECONDS - 60,
    exp: SECONDS + 60,
    repository: 'acme/app',
    ref: 'refs/heads/next',
    deep: { name: 7 },
  },
  key: own.privateKey,
  tokenType: 'at+jwt',
  edit: (token) => token,
})
const set =
  (where: 'header' | 'claims', name: string, value: unknown) =>
  ({ [where]: object }: Parts): void => {
    if (value === undefined) delete object[name]
    else object[name] = value
  }

const base = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

async function judge(...changes: ((parts: Parts) => void)[]) {
  const parts = sound()
  for (const change of changes) change(parts)
  const { header, claims, key, tokenType, edit } = parts
  const body = `${base(header)}.${base(claims)}`
  const signature = createSign('sha256').update(body).sign({ key, dsaEncoding: 'ieee-p1363' })
  const token = edit(`${body}.${signature.toString('base64url')}`)
  return await judgeToken(token, { ...RULES, tokenType }, find, NOW)
}
async function refusalOf(...changes: ((parts: Parts) => void)[]): Promise<string> {
  try {
    await judge(...changes)
    return 'accepted'
  } catch (error) {
    if (error instanceof TokenError) return error.check
    throw error
  }
}

/** Each breaks what its check looks at, and nothing else. */
const DEFECTS: readonly [check: string, what: string, (parts: Parts) => void][] = [
  ['form', 'a part too many', (parts) => wrap(parts, (token) => `${token}.x`)],
  ['form', 'characters that are no base64url', (parts) => wrap(parts, (token) => `${token}=`)],
  [
    'form',
    'a header that is no object',
    (parts) => wrap(parts, (token) => token.replace(/^[^.]+/, base([]))),
  ],
  ['form', 'too long', (parts) => wrap(parts, (token) => token + 'A'.repeat(MAX_TOKEN))],
  ['algorithm', 'none', set('header', 'alg', 'none')],
  ['algorithm', 'a code by the public key', set('header', 'alg', 'HS256')],
  ['algorithm', 'none that is there', set('header', 'alg', undefined)],
  ['critical', 'a header that must be understood', set('header', 'crit', ['exp'])],
  ['embedded_key', 'a place of keys', set('header', 'jku', 'https://evil.lab/jwks')],
  ['embedded_key', 'a place of certificates', set('header', 'x5u', 'https://evil.lab/cert')],
  ['embedded_key', 'a key', set('header', 'jwk', other.publicKey.export({ format: 'jwk' }))],
  ['embedded_key', 'certificates', set('header', 'x5c', ['MIIB'])],
  ['type', 'an ID token', set('header', 'typ', 'JWT')],
  ['type', 'none', set('header', 'typ', undefined)],
  ['kid', 'none', set('header', 'kid', undefined)],
  ['kid', 'too long', set('header', 'kid', 'k'.repeat(256))],
  ['key', 'one that the issuer does not have', set('header', 'kid', 'k2')],
  ['key', 'one of another algorithm', set('header', 'alg', 'RS256')],
  ['signature', "another's", (parts) => Object.assign(parts, { key: other.privateKey })],
  ['signature', 'of another payload', (parts) => wrap(parts, (token) => forged(token))],
  ['issuer', 'another', set('claims', 'iss', 'https://evil.lab')],
  ['issuer', 'one that begins alike', set('claims', 'iss', `${RULES.issuer}/`)],
  ['issuer', 'none', set('claims', 'iss', undefined)],
  ['audience', 'another', set('claims', 'aud', 'other')],
  ['audience', 'one that holds the right one', set('claims', 'aud', ['bastion2'])],
  ['audience', 'none', set('claims', 'aud', undefined)],
  ['expiry', 'over', set('claims', 'exp', SECONDS - CLOCK_SKEW)],
  ['expiry', 'none', set('claims', 'exp', undefined)],
  ['expiry', 'text', set('claims', 'exp', `${SECONDS + 60}`)],
  ['not_before', 'later', set('claims', 'nbf', SECONDS + CLOCK_SKEW + 1)],
  ['not_before', 'text', set('claims', 'nbf', 'now')],
  ['issued_at', 'later', set('claims', 'iat', SECONDS + CLOCK_SKEW + 1)],
  ['issued_at', 'none', set('claims', 'iat', undefined)],
  ['age', 'over a day', set('claims', 'iat', SECONDS - MAX_AGE - CLOCK_SKEW - 1)],
  ['subject', 'none', set('claims', 'sub', undefined)],
  ['subject', 'too long', set('claims', 'sub', 's'.repeat(256))],
  ['client', 'none', set('claims', 'client_id', undefined)],
  ['token_id', 'none', set('claims', 'jti', undefined)],
  ['id_token', 'a nonce', (parts) => Object.assign(job(parts).claims, { nonce: 'n' })],
  ['id_token', 'the hash of an access token', (parts) => Object.assign(job(parts).claims, { at_hash: 'h' })],
  ['bound_claim', 'another value', set('claims', 'repository', 'acme/app2')],
  ['bound_claim', 'one of several that is none of them', set('claims', 'ref', 'refs/heads/evil')],
  ['bound_claim', 'none', set('claims', 'deep', {})],
  ['bound_claim', 'a list', set('claims', 'repository', ['acme/app'])],
]
const wrap = (parts: Parts, edit: (token: string) => string) => {
  const before = parts.edit
  parts.edit = (token) => edit(before(token))
}
const forged = (token: string) => {
  const [header, payload, signature] = token.split('.')
  const claims = { ...JSON.parse(Buffer.from(payload!, 'base64url').toString()), admin: true }
  return [header, base(claims), signature].join('.')
}
/** A token as those of CI jobs are. */
function job(parts: Parts): Parts {
  parts.tokenType = 'jwt'
  delete parts.claims['client_id']
  delete parts.claims['jti']
  return parts
}

describe('a sound token', () => {
  test('is accepted, with its claims', async () => {
    expect(await judge()).toMatchObject({ sub: 'u1', repository: 'acme/app' })
    expect(await refusalOf(set('header', 'typ', 'application/AT+jwt'))).toBe('accepted')
    expect(await refusalOf(set('claims', 'nbf', undefined))).toBe('accepted')
    expect(await refusalOf(set('claims', 'aud', 'bastion'))).toBe('accepted')
  })

  test('may be off by the skew of the clocks', async () => {
    expect(await refusalOf(set('claims', 'exp', SECONDS - CLOCK_SKEW + 1))).toBe('accepted')
    expect(await refusalOf(set('claims', 'nbf', SECONDS + CLOCK_SKEW))).toBe('accepted')
    expect(await refusalOf(set('claims', 'iat', SECONDS + CLOCK_SKEW))).toBe('accepted')
  })

  test('of a job needs neither type nor client', async () => {
    expect(await refusalOf((parts) => set('header', 'typ', undefined)(job(parts)))).toBe('accepted')
    expect(await refusalOf((parts) => set('header', 'typ', 'JWT')(job(parts)))).toBe('accepted')
    expect(await refusalOf((parts) => set('header', 'typ', 'secevent+jwt')(job(parts)))).toBe('type')
  })
})

describe('a defect', () => {
  test.each(DEFECTS)('of %s (%s) is refused by that check', async (check, _what, change) => {
    expect(await refusalOf(change)).toBe(check)
  })

  test('is refused beside each other one', async () => {
    const accepted: string[] = []
    for (const [check, what, change] of DEFECTS)
      for (const [second, also, more] of DEFECTS)
        if ((await refusalOf(change, more)) === 'accepted')
          accepted.push(`${check} (${what}), ${second} (${also})`)
    expect(accepted).toEqual([])
  })

  test('is there for each check, and the documentation has each', () => {
    expect(new Set(DEFECTS.map(([check]) => check))).toEqual(new Set(TOKEN_CHECKS))
    const page = readFileSync(new URL('../../../../docs/sign-in.md', import.meta.url), 'utf8')
    const [, table] = page.split('\n## Access tokens\n')
    const rows = [...(table ?? '').split('\n## ')[0]!.matchAll(/^\| `(\w+)` \|/gm)].map(([, check]) => check)
    expect(rows).toEqual([...TOKEN_CHECKS])
  })
})

test('no text is a token, and none does more than be refused', async () => {
  const part = fc.oneof(
    fc.string({ maxLength: 40 }),
    fc.json({ maxDepth: 3 }).map((text) => Buffer.from(text).toString('base64url')),
    fc.constantFrom(base(sound().header), base(sound().claims), 'AAAA'),
  )
  const texts = fc.array(part, { maxLength: 5 }).map((parts) => parts.join('.'))
  await fc.assert(
    fc.asyncProperty(texts, async (text) => {
      await expect(judgeToken(text, RULES, find, NOW)).rejects.toThrow(TokenError)
    }),
    { numRuns: 300 },
  )
})
