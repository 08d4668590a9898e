/** Opaque access tokens: answers of an issuer about them (RFC 7662), sound and wrong ones. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { MAX_ANSWER } from '../../../../src/identity/methods/oidc/https-json.ts'
import { OidcMethod } from '../../../../src/identity/methods/oidc/method.ts'
import { MAX_ASKING_OF_NETWORK } from '../../../../src/identity/methods/turns.ts'
import type { ExternalAuth, OidcOptions } from '../../../../src/model/external-auths.ts'
import { Secret } from '../../../../src/model/secret.ts'
import { type CertificateFiles, certificateFiles } from '../../../peers/vnc/certificate.ts'
import { newExternalAuth } from '../../../store/fixture.ts'

const NOW = Date.UTC(2031, 0, 1)
const SECONDS = NOW / 1000
const HERE = '192.0.2.1'

let files: CertificateFiles
let server: Server
let issuer: string
/** Answers questions about tokens. */
let introspect: (token: string, answer: ServerResponse, request: IncomingMessage) => void
const asked: string[] = []
beforeAll(async () => {
  files = await certificateFiles()
  server = createServer(files.pem, (request, answer) => {
    answer.setHeader('content-type', 'application/json')
    if (request.url === '/introspect') {
      let body = ''
      request.on('data', (chunk) => (body += chunk))
      request.on('end', () => {
        const token = new URLSearchParams(body).get('token') ?? ''
        asked.push(token)
        introspect(token, answer, request)
      })
      return
    }
    const found = { issuer, jwks_uri: `${issuer}/keys`, introspection_endpoint: `${issuer}/introspect` }
    answer.end(JSON.stringify(request.url === '/keys' ? { keys: [] } : found))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
  files.remove()
})
beforeEach(() => {
  asked.length = 0
})

const sound = (): Record<string, unknown> => ({
  active: true,
  sub: 'u1',
  aud: ['other', 'bastion'],
  exp: SECONDS + 60,
  iss: issuer,
  username: 'alice',
  groups: ['ops'],
  scope: 'read write',
})
const says = (change: Record<string, unknown>) => {
  introspect = (_token, answer) => void answer.end(JSON.stringify({ ...sound(), ...change }))
}
const clock = { now: NOW }
function method(options: Partial<OidcOptions> = {}, timeoutMs = 5000): OidcMethod {
  const client = { id: 'bastion', authentication: 'client_secret_basic' } as OidcOptions['client'] & object
  const all: OidcOptions = {
    ...{ issuer, audience: 'bastion', tokenType: 'opaque', userClaim: 'username', scopes: [] },
    ...{ boundClaims: [], caCertificates: files.pem.cert, client },
    ...options,
  }
  const auth = { ...newExternalAuth('login', { timeoutMs }), id: 'a1', type: 'OIDC', options: all }
  clock.now = NOW
  return new OidcMethod({
    auth: auth as unknown as Extract<ExternalAuth, { type: 'OIDC' }>,
    attributes: {},
    secrets: { clientSecret: Secret.of('client secret') },
    site: 'https://bastion.lab',
    now: () => clock.now,
    onFailure: () => undefined,
  })
}
const bear = (made: OidcMethod, token = 'opaque-token') => made.bear(token, HERE)

test('the issuer says the person of a token, to the client that it knows', async () => {
  introspect = (token, answer, { headers }) => {
    const isKnown = headers.authorization === `Basic ${btoa('bastion:client+secret')}`
    answer.end(JSON.stringify(isKnown && token === 'opaque-token' ? sound() : { active: false }))
  }
  const made = method()
  expect(await bear(made)).toMatchObject({
    result: 'accepted',
    ends: (SECONDS + 60) * 1000,
    person: { userName: 'alice', stableId: `${issuer} u1`, groups: ['ops'] },
    scopes: ['read', 'write'],
  })
  expect(await bear(made, 'opaque-token2')).toMatchObject({ result: 'rejected' })
  await bear(made)
  expect(asked).toEqual(['opaque-token', 'opaque-token2'])
  // The answer is kept, its end is not put off.
  clock.now += 91_000
  expect(await bear(made)).toMatchObject({ result: 'rejected', reason: expect.stringContaining('expiry') })
  expect(asked).toHaveLength(2)
})

test.each([
  ['active', { active: false }],
  ['issuer', { iss: 'https://evil.lab' }],
  ['audience', { aud: 'another' }],
  ['audience', { aud: undefined }],
  ['audience', { aud: { bastion: true } }],
  ['expiry', { exp: undefined }],
  ['expiry', { exp: `${SECONDS + 60}` }],
  ['expiry', { exp: SECONDS - 31 }],
  ['not_before', { nbf: SECONDS + 31 }],
  ['issued_at', { iat: SECONDS + 31 }],
  ['subject', { sub: undefined }],
  ['subject', { sub: { id: 'u1' } }],
  ['bound_claim', { tenant: 't2' }],
])('an answer is refused by %s: %j', async (check, change) => {
  says({ tenant: 't1', ...change })
  expect(await bear(method({ boundClaims: ['tenant=t1'] }))).toMatchObject({
    result: 'rejected',
    reason: expect.stringContaining(`refused by ${check}`),
  })
})

test.each<[string, (answer: ServerResponse) => unknown]>([
  ['active that is a text', (answer) => answer.end(JSON.stringify({ ...sound(), active: 'true' }))],
  ['active that is a number', (answer) => answer.end(JSON.stringify({ ...sound(), active: 1 }))],
  ['no active', (answer) => answer.end(JSON.stringify({ ...sound(), active: undefined }))],
  ['a list', (answer) => answer.end(JSON.stringify([sound()]))],
  ['a page', (answer) => answer.setHeader('content-type', 'text/html').end('<html>')],
  ['status 401', (answer) => answer.writeHead(401).end('{"error":"invalid_client"}')],
  ['a redirect', (answer) => answer.writeHead(307, { location: `${issuer}/keys` }).end()],
  ['too much', (answer) => answer.end(`{"active":true,"x":"${'x'.repeat(MAX_ANSWER)}"}`)],
  [
    'a part',
    (answer) => answer.writeHead(200, { 'content-length': '99' }).write('{', () => answer.destroy()),
  ],
  ['nothing in time', () => undefined],
  ['one byte in time', (answer) => answer.write(' ')],
])('an issuer that answers %s has not judged: nobody is in, and it is asked again', async (what, give) => {
  introspect = (_token, answer) => void give(answer)
  const made = method({}, what.endsWith('in time') ? 150 : 5000)
  expect(await bear(made)).toMatchObject({ result: 'unavailable' })
  says({})
  expect(await bear(made)).toMatchObject({ result: 'accepted' })
})

test('tokens of one network wait for the issuer in a limited number, and those of others go on', async () => {
  const held: (() => void)[] = []
  introspect = (token, answer) => {
    const give = () => answer.end(JSON.stringify(token === 'good' ? sound() : { active: false }))
    if (token === 'good') give()
    else held.push(give)
  }
  const made = method()
  await bear(made, 'good')
  const all = Array.from({ length: MAX_ASKING_OF_NETWORK }, (_, at) => bear(made, `made-up-${at}`))
  await expect.poll(() => held.length).toBe(MAX_ASKING_OF_NETWORK)
  expect(await bear(made, 'one-more')).toMatchObject({
    result: 'unavailable',
    reason: 'too many tokens wait for the issuer',
  })
  expect(await bear(made, 'good')).toMatchObject({ result: 'accepted' })
  const other = made.bear('good2', '198.51.100.7')
  await expect.poll(() => asked).toContain('good2')
  for (const give of held) give()
  expect((await Promise.all(all)).every(({ result }) => result === 'rejected')).toBe(true)
  expect(await other).toMatchObject({ result: 'rejected' })
})

test('a token that is too long is not sent', async () => {
  says({})
  expect(await bear(method(), 'x'.repeat(16_385))).toMatchObject({ result: 'rejected' })
  expect(asked).toEqual([])
})
