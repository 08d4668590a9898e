/** Keys of an issuer: when they are read, how long they count, and what a hostile issuer can do. */
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { errors } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { getJson, MAX_ANSWER } from '../../../../src/identity/methods/oidc/https-json.ts'
import {
  Issuer,
  IssuerError,
  KEYS_FRESH_MS,
  KEYS_STALE_MS,
  PAUSE_AFTER_FAILURE_MS,
  PAUSE_MS,
} from '../../../../src/identity/methods/oidc/issuer.ts'
import { type CertificateFiles, certificateFiles } from '../../../peers/vnc/certificate.ts'

const ISSUER = 'https://login.lab/realm'
const key = (kid: string) => ({
  kty: 'EC',
  crv: 'P-256',
  kid,
  x: 'MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4',
  y: '4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM',
})

function issuer() {
  const state = {
    now: 0,
    asked: [] as string[],
    failures: [] as string[],
    found: { issuer: ISSUER, jwks_uri: 'https://keys.lab/jwks' } as Record<string, unknown>,
    set: { keys: [key('k1')] } as Record<string, unknown>,
    isAway: false,
  }
  const made = new Issuer({
    issuer: ISSUER,
    now: () => state.now,
    onFailure: ({ message }) => state.failures.push(message),
    get: async ({ href }) => {
      state.asked.push(href)
      if (state.isAway) throw new Error('away')
      return href.endsWith('/jwks') ? state.set : state.found
    },
  })
  const find = async (kid: string) => {
    try {
      await made.key({ alg: 'ES256', kid }, { payload: '', signature: '' })
      return 'found'
    } catch (error) {
      if (error instanceof IssuerError) return 'away'
      if (error instanceof errors.JWKSNoMatchingKey) return 'none'
      throw error
    }
  }
  return { state, find }
}

test('keys are found by the discovery document, once for all that ask at a time', async () => {
  const { state, find } = issuer()
  expect(await Promise.all([find('k1'), find('k1'), find('k2')])).toEqual(['found', 'found', 'none'])
  expect(state.asked).toEqual([`${ISSUER}/.well-known/openid-configuration`, 'https://keys.lab/jwks'])
})

test('a new key is read when a token names it, and made-up ones cause one reading in a pause', async () => {
  const { state, find } = issuer()
  await find('k1')
  state.set = { keys: [key('k2')] }
  for (let at = 0; at < 50; at++) expect(await find(`made-up-${at}`)).toBe('none')
  expect(state.asked).toHaveLength(2)
  state.now += PAUSE_MS
  expect([await find('k2'), await find('k1')]).toEqual(['found', 'none'])
  expect(state.asked).toHaveLength(4)
})

test('a key that was withdrawn counts no longer than keys are fresh', async () => {
  const { state, find } = issuer()
  await find('k1')
  state.set = { keys: [key('k2')] }
  state.now += KEYS_FRESH_MS - 1
  expect(await find('k1')).toBe('found')
  state.now += 1
  expect(await find('k1')).toBe('none')
})

test('an issuer that is away is asked again after a pause, and its keys count for an hour', async () => {
  const { state, find } = issuer()
  state.isAway = true
  expect([await find('k1'), await find('k1')]).toEqual(['away', 'away'])
  expect(state.asked).toHaveLength(1)
  state.isAway = false
  state.now += PAUSE_AFTER_FAILURE_MS
  expect(await find('k1')).toBe('found')
  state.isAway = true
  state.now += KEYS_STALE_MS - 1
  expect(await find('k1')).toBe('found')
  state.now += 1
  expect(await find('k1')).toBe('away')
})

test.each([
  ['the document of another issuer', { found: { issuer: `${ISSUER}/`, jwks_uri: 'https://keys.lab/jwks' } }],
  ['keys without TLS', { found: { issuer: ISSUER, jwks_uri: 'http://keys.lab/jwks' } }],
  ['no place of keys', { found: { issuer: ISSUER } }],
  ['no keys', { set: {} }],
  ['too many keys', { set: { keys: Array.from({ length: 65 }, () => key('k1')) } }],
])('%s are not used', async (_what, change) => {
  const { state, find } = issuer()
  Object.assign(state, change)
  expect(await find('k1')).toBe('away')
  expect(state.failures).toHaveLength(1)
})

test.each([
  ['a shared secret', { kty: 'oct', kid: 'k1', k: 'c2VjcmV0' }],
  ['a key for encryption', { ...key('k1'), use: 'enc' }],
  ['nothing', null],
])('%s is no key', async (_what, bad) => {
  const { state, find } = issuer()
  state.set = { keys: [bad] }
  expect(await find('k1')).toBe('none')
})

let files: CertificateFiles
let server: Server
let base: string
beforeAll(async () => {
  files = await certificateFiles()
  server = createServer(files.pem, ({ url }, answer) => {
    if (url === '/good') answer.end('{"a":1}')
    if (url === '/list') answer.end('[]')
    if (url === '/page') answer.end('<html>')
    if (url === '/redirect') answer.writeHead(302, { location: '/good' }).end()
    if (url === '/reset') answer.socket?.destroy()
    if (url === '/cut') answer.writeHead(200, { 'content-length': '9' }).write('{"a"', () => answer.destroy())
    if (url === '/drip') answer.write(' ')
    if (url === '/long') answer.end(`"${'x'.repeat(MAX_ANSWER)}"`)
    if (url === '/headers') answer.writeHead(200, { x: 'x'.repeat(20_000) }).end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  base = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
  files.remove()
})
const get = (path: string, caCertificates: string | undefined = files.pem.cert, timeoutMs = 5000) =>
  getJson(new URL(path, base), { caCertificates, timeoutMs }, new AbortController().signal)

test('a JSON object is read', async () => {
  expect(await get('/good')).toEqual({ a: 1 })
})

test.each([
  ['/list', 'expected a JSON object'],
  ['/page', 'JSON'],
  ['/redirect', 'expected status 200, got 302'],
  ['/reset', 'hang up'],
  ['/cut', 'aborted'],
  ['/long', 'longer than'],
  ['/headers', 'Header overflow'],
  ['/silent', 'no whole answer within 100 ms'],
  ['/drip', 'no whole answer within 100 ms'],
])('%s is refused', async (path, message) => {
  const timeout = path === '/silent' || path === '/drip' ? 100 : 5000
  await expect(get(path, files.pem.cert, timeout)).rejects.toThrow(message)
})

test('a certificate of no known authority is refused', async () => {
  const call = getJson(
    new URL('/good', base),
    { caCertificates: undefined, timeoutMs: 5000 },
    new AbortController().signal,
  )
  await expect(call).rejects.toThrow(/certificate/)
})
