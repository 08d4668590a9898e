/** ID Tokens and Logout Tokens: sound ones, and each defect alone and beside each other one. */
import { createHash, createSign, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createLocalJWKSet } from 'jose'
import { describe, expect, test } from 'vitest'
import {
  type Expected,
  ID_TOKEN_CHECKS,
  type IdTokenRules,
  judgeIdToken,
} from '../../../../src/identity/methods/oidc/id-token.ts'
import {
  LOGOUT_CHECKS,
  LogoutTokens,
  MAX_LOGOUT_AGE,
} from '../../../../src/identity/methods/oidc/logout-token.ts'
import { CLOCK_SKEW, MAX_AGE, MAX_TOKEN, TokenError } from '../../../../src/identity/methods/oidc/signed.ts'

type Json = Record<string, unknown>
interface Parts {
  header: Json
  claims: Json
  key: KeyObject
  edit: (token: string) => string
}
type Defect = readonly [check: string, what: string, (parts: Parts) => void]

const NOW = Date.UTC(2031, 0, 1)
const SECONDS = NOW / 1000
const ISSUER = 'https://login.lab/realm'
const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
const RULES: IdTokenRules = {
  issuer: ISSUER,
  id: 'bastion',
  acrValues: ['gold', 'silver'],
  amrValues: ['pwd', 'mfa'],
  maxAge: 600,
}
const EXPECTED: Expected = { nonce: 'n-1', accessToken: 'access-1' }
const own = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const find = createLocalJWKSet({
  keys: [{ ...(own.publicKey.export({ format: 'jwk' }) as { kty: 'EC' }), kid: 'k1', alg: 'ES256' }],
})
const hashOf = (text: string) =>
  createHash('sha256').update(text).digest().subarray(0, 16).toString('base64url')

const common = { iss: ISSUER, aud: 'bastion', iat: SECONDS - 10, exp: SECONDS + 60 }
const parts = (claims: Json, typ: string): Parts => ({
  header: { alg: 'ES256', typ, kid: 'k1' },
  claims: { ...common, ...claims },
  key: own.privateKey,
  edit: (token) => token,
})
const idToken = () =>
  parts(
    {
      sub: 'u1',
      azp: 'bastion',
      nbf: SECONDS - 10,
      nonce: 'n-1',
      at_hash: hashOf('access-1'),
      auth_time: SECONDS - 300,
      acr: 'silver',
      amr: ['pwd', 'mfa', 'otp'],
    },
    'JWT',
  )
const logoutToken = () =>
  parts({ sub: 'u1', sid: 's1', jti: 'j1', nbf: SECONDS - 10, events: { [EVENT]: {} } }, 'logout+jwt')

const base = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
function tokenOf(made: Parts, changes: readonly ((parts: Parts) => void)[]): string {
  for (const change of changes) change(made)
  const body = `${base(made.header)}.${base(made.claims)}`
  const signature = createSign('sha256').update(body).sign({ key: made.key, dsaEncoding: 'ieee-p1363' })
  return made.edit(`${body}.${signature.toString('base64url')}`)
}
const refusal = (run: Promise<unknown>): Promise<string> =>
  run.then(
    () => 'accepted',
    (error: unknown) => {
      if (error instanceof TokenError) return error.check
      throw error
    },
  )
const ofIdToken = (...changes: ((parts: Parts) => void)[]) =>
  refusal(judgeIdToken(tokenOf(idToken(), changes), RULES, EXPECTED, find, NOW))
const newTokens = () => new LogoutTokens({ issuer: ISSUER, clientId: 'bastion' })
const ofLogout = (...changes: ((parts: Parts) => void)[]) =>
  refusal(newTokens().judge(tokenOf(logoutToken(), changes), find, NOW))

const set =
  (where: 'header' | 'claims', name: string, value: unknown) =>
  ({ [where]: object }: Parts): void => {
    if (value === undefined) delete object[name]
    else object[name] = value
  }
const claim = (name: string, value: unknown) => set('claims', name, value)
const wrap = (edit: (token: string) => string) => (made: Parts) => {
  const before = made.edit
  made.edit = (token) => edit(before(token))
}
const forged = (token: string) => {
  const [header, payload, signature] = token.split('.')
  const claims = { ...JSON.parse(Buffer.from(payload!, 'base64url').toString()), admin: true }
  return [header, base(claims), signature].join('.')
}

/** Defects of every signed token; each breaks only what its check looks at. */
const signed = (maxAge: number): readonly Defect[] => [
  ['form', 'five parts: encrypted', wrap((token) => `${token}.x.y`)],
  ['form', 'other characters', wrap((token) => `${token}=`)],
  ['form', 'too long', wrap((token) => token + 'A'.repeat(MAX_TOKEN))],
  ['algorithm', 'none', set('header', 'alg', 'none')],
  ['algorithm', 'a code by the public key', set('header', 'alg', 'HS256')],
  ['critical', 'a header that must be understood', set('header', 'crit', ['exp'])],
  ['embedded_key', 'a place of keys', set('header', 'jku', 'https://evil.lab/jwks')],
  ['embedded_key', 'a place of certificates', set('header', 'x5u', 'https://evil.lab/cert')],
  ['embedded_key', 'a key', set('header', 'jwk', other.publicKey.export({ format: 'jwk' }))],
  ['embedded_key', 'certificates', set('header', 'x5c', ['MIIB'])],
  ['type', 'an access token', set('header', 'typ', 'at+jwt')],
  ['kid', 'none', set('header', 'kid', undefined)],
  ['key', 'one that the issuer does not have', set('header', 'kid', 'k2')],
  ['key', 'one of another algorithm', set('header', 'alg', 'RS256')],
  ['signature', "another's", (made) => Object.assign(made, { key: other.privateKey })],
  ['signature', 'of another payload', wrap(forged)],
  ['issuer', 'another', claim('iss', 'https://evil.lab')],
  ['issuer', 'one that begins alike', claim('iss', `${ISSUER}/`)],
  ['audience', 'another', claim('aud', 'bastion2')],
  ['audience', 'none', claim('aud', undefined)],
  ['expiry', 'ended', claim('exp', SECONDS - CLOCK_SKEW)],
  ['expiry', 'none', claim('exp', undefined)],
  ['not_before', 'later', claim('nbf', SECONDS + CLOCK_SKEW + 1)],
  ['issued_at', 'later', claim('iat', SECONDS + CLOCK_SKEW + 1)],
  ['issued_at', 'none', claim('iat', undefined)],
  ['age', 'too old', claim('iat', SECONDS - maxAge - CLOCK_SKEW - 1)],
]
const OF_ID_TOKEN: readonly Defect[] = [
  ...signed(MAX_AGE),
  ['type', 'a Logout Token', set('header', 'typ', 'logout+jwt')],
  ['authorized_party', 'another', claim('azp', 'other')],
  [
    'authorized_party',
    'none, for several audiences',
    ({ claims }) => {
      claims['aud'] = ['bastion', 'other']
      delete claims['azp']
    },
  ],
  ['subject', 'none', claim('sub', undefined)],
  ['subject', 'too long', claim('sub', 's'.repeat(256))],
  ['access_token', 'the hash of another', claim('at_hash', hashOf('access-2'))],
  ['nonce', 'another', claim('nonce', 'n-2')],
  ['nonce', 'none', claim('nonce', undefined)],
  ['authentication_time', 'long ago', claim('auth_time', SECONDS - 600 - CLOCK_SKEW - 1)],
  ['authentication_time', 'none', claim('auth_time', undefined)],
  ['authentication_time', 'later', claim('auth_time', SECONDS + CLOCK_SKEW + 1)],
  ['context', 'a lower one', claim('acr', 'bronze')],
  ['context', 'none', claim('acr', undefined)],
  ['methods', 'one of two', claim('amr', ['pwd'])],
  ['methods', 'none', claim('amr', undefined)],
]
const OF_LOGOUT: readonly Defect[] = [
  ...signed(MAX_LOGOUT_AGE),
  [
    'session',
    'none',
    ({ claims }) => {
      delete claims['sub']
      delete claims['sid']
    },
  ],
  ['session', 'one that is no text', claim('sid', 7)],
  ['event', 'none', claim('events', undefined)],
  ['event', 'another', claim('events', { 'https://example.org/other': {} })],
  ['event', 'text', claim('events', { [EVENT]: 'yes' })],
  ['no_nonce', 'a nonce', claim('nonce', 'n-1')],
  ['token_id', 'none', claim('jti', undefined)],
]

describe.each([
  ['ID Token', OF_ID_TOKEN, ofIdToken],
  ['Logout Token', OF_LOGOUT, ofLogout],
] as const)('a defect of an %s', (_kind, defects, judge) => {
  test.each(defects)('in %s (%s) is refused by that check', async (check, _what, change) => {
    expect(await judge()).toBe('accepted')
    expect(await judge(change)).toBe(check)
  })

  test('is refused beside each other one', async () => {
    const accepted: string[] = []
    for (const [check, what, change] of defects)
      for (const [second, also, more] of defects)
        if ((await judge(change, more)) === 'accepted')
          accepted.push(`${check} (${what}), ${second} (${also})`)
    expect(accepted).toEqual([])
  })
})

test('each check has its defect, and the documentation has each', () => {
  const replay = [...new Set(OF_LOGOUT.map(([check]) => check)), 'replay']
  expect([...new Set(OF_ID_TOKEN.map(([check]) => check))].sort()).toEqual([...ID_TOKEN_CHECKS].sort())
  expect(replay.sort()).toEqual([...LOGOUT_CHECKS].sort())
  const page = readFileSync(new URL('../../../../docs/sign-in.md', import.meta.url), 'utf8')
  const rowsOf = (title: string) => {
    const [, part = ''] = page.split(`\n### ${title}\n`)
    return [...part.split('\n#')[0]!.matchAll(/^\| `(\w+)` \|/gm)].map(([, check]) => check)
  }
  const own = <T extends readonly string[]>(checks: T) => checks.filter((one) => !SHARED.includes(one))
  expect(rowsOf('Checks of ID Tokens')).toEqual(own(ID_TOKEN_CHECKS))
  expect(rowsOf('Logout at the provider')).toEqual(own(LOGOUT_CHECKS))
})
/** Checks that the table of access tokens has. */
const SHARED = [
  ...['form', 'algorithm', 'critical', 'embedded_key', 'kid', 'key', 'signature', 'issuer'],
  ...['expiry', 'not_before', 'issued_at'],
]

test('a Logout Token counts once', async () => {
  const tokens = newTokens()
  const token = tokenOf(logoutToken(), [])
  expect(await tokens.judge(token, find, NOW)).toEqual({ subject: 'u1', sid: 's1' })
  expect(await refusal(tokens.judge(token, find, NOW + 1000))).toBe('replay')
  const bySubject = tokenOf(logoutToken(), [claim('sid', undefined), claim('jti', 'j2')])
  expect(await tokens.judge(bySubject, find, NOW)).toEqual({ subject: 'u1' })
})

test('a token of a refresh needs no nonce, and no authentication of now', async () => {
  const old = tokenOf(idToken(), [claim('nonce', undefined), claim('auth_time', 1), claim('acr', undefined)])
  expect(await refusal(judgeIdToken(old, RULES, { accessToken: 'access-1' }, find, NOW))).toBe('accepted')
  expect(await refusal(judgeIdToken(old, RULES, { accessToken: 'access-2' }, find, NOW))).toBe('access_token')
})
