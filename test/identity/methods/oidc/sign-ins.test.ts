/** Sign-ins by browser at oidc-provider: each kind of client, what is checked, and what a provider can fail at. */
import { generateKeyPairSync } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { MAX_OF_NAME } from '../../../../src/identity/dialogues.ts'
import { IssuerError } from '../../../../src/identity/methods/oidc/issuer.ts'
import { ATTEMPT_MS, type Finished } from '../../../../src/identity/oidc-sign-ins.ts'
import { ProviderCheck } from '../../../../src/identity/provider-check.ts'
import { CLIENT_SECRET, type LoginProvider, startLogins } from '../../../peers/oidc/logins.ts'
import { BROWSER, PATIENCE_MS, redirectUri, startWorld, type World } from './world.ts'

const SECRET = { client_secret: CLIENT_SECRET }
const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const privateKey = pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const jwks = { keys: [{ ...pair.publicKey.export({ format: 'jwk' }), kid: 'own', alg: 'ES256', use: 'sig' }] }
/** Milliseconds that a silent provider may take. */
const SHORT_MS = 300
const redirect_uris = ['one', 'two', 'corp'].map(redirectUri)

let peer: LoginProvider
let other: LoginProvider
let world: World
beforeAll(async () => {
  ;[peer, other] = await Promise.all([
    startLogins([
      { client_id: 'bastion', redirect_uris },
      { client_id: 'posting', redirect_uris, token_endpoint_auth_method: 'client_secret_post' },
      {
        client_id: 'keyed',
        redirect_uris,
        jwks,
        token_endpoint_auth_method: 'private_key_jwt',
        token_endpoint_auth_signing_alg: 'ES256',
      },
      { client_id: 'public', redirect_uris, token_endpoint_auth_method: 'none' },
      { client_id: 'short', redirect_uris, grant_types: ['authorization_code'] },
    ]),
    startLogins([{ client_id: 'bastion', redirect_uris }], false),
  ])
})
afterAll(() => Promise.all([peer?.stop(), other?.stop()]))
beforeEach(async () => {
  world = await startWorld()
  for (const one of [peer, other]) {
    one.fault = undefined
    one.persons.clear()
    one.persons.set('u1', { name: 'alice', groups: ['ops'] })
    one.requests.length = 0
  }
})
afterEach(() => world.close())

function person(finished: Finished) {
  if (finished.result !== 'ended' || finished.outcome.result !== 'accepted')
    throw new Error(JSON.stringify(finished))
  return finished.outcome
}
async function begin(name = 'one'): Promise<URL> {
  const begun = await world.signIns.begin(name, '/account', BROWSER)
  if (begun.result !== 'redirect') throw new Error(JSON.stringify(begun))
  return begun.url
}
/** Begins at the bastion and returns the parameters that the provider gives the browser. */
async function answered(url: URL, sub = 'u1', at = peer): Promise<URLSearchParams> {
  return (await at.signIn(at.newBrowser(), url, sub, url.searchParams.get('redirect_uri')!)).searchParams
}

test.each([
  ['client_secret_basic', 'bastion', SECRET],
  ['client_secret_post', 'posting', SECRET],
  ['private_key_jwt', 'keyed', { private_key: privateKey }],
  ['none', 'public', {}],
] as const)('a client signs persons in by %s', async (authentication, id, secrets) => {
  await world.provider('one', peer, { authentication, id }, {}, secrets)
  const { user, by, providerSession } = person(await world.signIn('one', peer, 'u1'))
  expect(user).toMatchObject({ userName: 'alice@one', displayName: 'ALICE', email: 'alice@example.org' })
  expect([by, user.groupIds.length]).toEqual([['one'], 1])
  const session = (await world.temp.store.providerSessions.find(providerSession!))!
  expect([session.subject, session.userId]).toEqual(['u1', user.id])
  expect(Object.keys(world.sessions.tokensOf(session)).sort()).toEqual(['idToken', 'refreshToken'])
  // The claims were not in the ID Token.
  expect(peer.requests).toContain('GET /me')
})

test('a key is named as the issuer knows it: by another name it is not that of the client', async () => {
  const keyed = { authentication: 'private_key_jwt', id: 'keyed' } as const
  await world.provider('one', peer, { ...keyed, keyId: 'own' }, {}, { private_key: privateKey })
  person(await world.signIn('one', peer, 'u1'))
  await world.provider('two', peer, { ...keyed, keyId: 'other' }, {}, { private_key: privateKey })
  expect(await world.signIn('two', peer, 'u1')).toMatchObject({
    outcome: { result: 'unavailable', reason: expect.stringContaining('invalid_client') },
  })
})

test('the request has all that the protocol and the policy ask for, and nothing twice', async () => {
  const policy = { acrValues: ['gold', 'silver'], maxAge: 600, prompt: 'login' as const }
  await world.provider('one', peer, policy, {}, SECRET)
  const [one, two] = [await begin(), await begin()]
  const { state, nonce, code_challenge, ...rest } = Object.fromEntries(one.searchParams)
  expect(rest).toEqual({
    response_type: 'code',
    client_id: 'bastion',
    redirect_uri: redirectUri('one'),
    scope: 'openid profile email',
    code_challenge_method: 'S256',
    acr_values: 'gold silver',
    max_age: '600',
    prompt: 'login',
  })
  for (const name of ['state', 'nonce', 'code_challenge']) {
    expect(one.searchParams.get(name)!.length).toBeGreaterThanOrEqual(22)
    expect(one.searchParams.get(name)).not.toBe(two.searchParams.get(name))
  }
})

test('a person is known by issuer and sub: a new name or address is the same person, a new sub is not', async () => {
  await world.provider('one', peer, {}, {}, SECRET)
  const before = person(await world.signIn('one', peer, 'u1')).user
  peer.persons.set('u1', { name: 'alicia', groups: ['ops'] })
  const renamed = person(await world.signIn('one', peer, 'u1')).user
  expect([renamed.id, renamed.userName]).toEqual([before.id, 'alicia@one'])
  peer.persons.set('u2', { name: 'alicia', email: 'alicia@example.org', groups: ['ops'] })
  const taken = person(await world.signIn('one', peer, 'u2')).user
  expect([taken.id === before.id, taken.userName]).toEqual([false, 'alicia@one'])
})

test('providers stand side by side, and the same sub of two of them is two persons', async () => {
  await world.provider('one', peer, {}, {}, SECRET)
  await world.provider('two', other, {}, {}, SECRET)
  const ids = [await world.signIn('one', peer, 'u1'), await world.signIn('two', other, 'u1')]
  expect(ids.map((one) => person(one).user.userName)).toEqual(['alice@one', 'alice@two'])
  expect((await world.signIns.providers()).map(({ auth }) => auth.authenticationName)).toEqual(['one', 'two'])
})

test('an answer counts once, in the browser that began, at the provider that was asked', async () => {
  await world.provider('one', peer, {}, {}, SECRET)
  await world.provider('two', other, {}, {}, SECRET)
  const parameters = await answered(await begin())
  const stranger = { ...BROWSER, owner: 'browser 2' }
  expect(await world.signIns.finish('one', parameters, stranger)).toMatchObject({ result: 'stale' })
  person(await world.signIns.finish('one', parameters, BROWSER))
  expect(await world.signIns.finish('one', parameters, BROWSER)).toMatchObject({ result: 'stale' })
  const mixed = await answered(await begin())
  expect(await world.signIns.finish('two', mixed, BROWSER)).toMatchObject({ result: 'stale' })
})

test.each([
  ['the iss of another provider (RFC 9207)', (one: URLSearchParams) => one.set('iss', 'https://evil.lab')],
  ['no iss', (one: URLSearchParams) => one.delete('iss')],
  ['iss twice', (one: URLSearchParams) => one.append('iss', one.get('iss')!)],
  ['no code', (one: URLSearchParams) => one.delete('code')],
  ['a code that was made up', (one: URLSearchParams) => one.set('code', 'x'.repeat(43))],
])('an answer with %s is refused, which counts', async (_what, change) => {
  await world.provider('one', peer, {}, {}, SECRET)
  const parameters = await answered(await begin())
  change(parameters)
  const finished = await world.signIns.finish('one', parameters, BROWSER)
  expect(finished).toMatchObject({ result: 'ended', outcome: { result: 'rejected', locks: false } })
})

test('a code of another attempt does not fit: verifier and nonce are of one attempt', async () => {
  await world.provider('one', peer, {}, {}, SECRET)
  const [one, two] = [await answered(await begin()), await answered(await begin())]
  one.set('code', two.get('code')!)
  const finished = await world.signIns.finish('one', one, BROWSER)
  expect(finished).toMatchObject({ result: 'ended', detail: expect.stringContaining('invalid_grant') })
})

test('an error of the provider is reported in its words, and counts as no failure', async () => {
  await world.provider('one', peer, {}, {}, SECRET)
  const url = await begin()
  const denied = new URLSearchParams({
    error: 'access_denied',
    error_description: '<b>no</b>',
    state: url.searchParams.get('state')!,
    iss: peer.issuer,
  })
  expect(await world.signIns.finish('one', denied, BROWSER)).toEqual({
    result: 'denied',
    error: 'access_denied',
    description: '<b>no</b>',
    return: '/account',
  })
  const trouble = new URLSearchParams(denied)
  trouble.set('error', 'temporarily_unavailable')
  trouble.set('state', (await begin()).searchParams.get('state')!)
  const finished = await world.signIns.finish('one', trouble, BROWSER)
  expect(finished).toMatchObject({ result: 'ended', outcome: { result: 'unavailable', server: 'one' } })
})

test.each([
  ['acr', { acrValues: ['gold'] }, 'context'],
  ['amr', { amrValues: ['mfa'] }, 'methods'],
])('a policy of %s is enforced, whatever the provider does', async (_what, policy, check) => {
  await world.provider('one', peer, policy, {}, SECRET)
  const finished = await world.signIn('one', peer, 'u1')
  expect(finished).toMatchObject({ detail: expect.stringContaining(`refused by ${check}`) })
})

test('max_age is sent, and auth_time judged', async () => {
  await world.provider('one', peer, { maxAge: 60 }, {}, SECRET)
  const url = await begin()
  person(await world.signIns.finish('one', await answered(url), BROWSER))
  const old = await begin()
  old.searchParams.delete('max_age')
  const finished = await world.signIns.finish('one', await answered(old), BROWSER)
  expect(finished).toMatchObject({ detail: expect.stringContaining('authentication_time') })
})

test('claims can be required, such as the tenant', async () => {
  await world.provider('one', peer, {}, { boundClaims: ['hd=example.org'] }, SECRET)
  const finished = await world.signIn('one', peer, 'u1')
  expect(finished).toMatchObject({ detail: expect.stringContaining('refused by bound_claim') })
})

test.each([
  ['/token', 500],
  ['/token', 'silence'],
  ['/token', 302],
  ['/me', 503],
  ['/me', 'silence'],
  ['/jwks', 500],
  ['/jwks', 'silence'],
] as const)('a provider whose %s returns %s is away, which counts as no failure', async (at, status) => {
  await world.provider('one', peer, {}, {}, SECRET)
  const parameters = await answered(await begin())
  await world.within('one', status === 'silence' ? SHORT_MS : PATIENCE_MS - 1)
  peer.fault = (path) => (path === at ? status : undefined)
  const finished = await world.signIns.finish('one', parameters, BROWSER)
  expect(finished).toMatchObject({ result: 'ended', outcome: { result: 'unavailable', server: 'one' } })
})

test('a provider that is away at the beginning, or a client without its secret, is reported', async () => {
  await world.provider('one', peer)
  expect(await world.signIns.begin('one', '/', BROWSER)).toMatchObject({
    result: 'ended',
    outcome: { result: 'unavailable', reason: 'client_secret is not set' },
  })
  await world.provider('two', { ...peer, issuer: 'https://127.0.0.1:9' }, {}, {}, SECRET)
  expect(await world.signIns.begin('two', '/', BROWSER)).toMatchObject({ outcome: { result: 'unavailable' } })
  expect(await world.signIns.begin('none', '/', BROWSER)).toEqual({ result: 'unknown' })
  expect(world.signIns.waiting).toBe(0)
})

test.each([500, 302, 'silence'] as const)(
  'a provider whose metadata are %s is away, at the beginning and for a logout',
  async (status) => {
    peer.fault = (path) => (path === '/.well-known/openid-configuration' ? status : undefined)
    await world.provider('one', peer, {}, {}, SECRET)
    if (status === 'silence') await world.within('one', SHORT_MS)
    const ended: unknown[] = []
    const header = Buffer.from('{"alg":"RS256","kid":"logins","typ":"logout+jwt"}').toString('base64url')
    const [begun, logout] = await Promise.all([
      world.signIns.begin('one', '/', BROWSER),
      world.signIns
        .backChannel('one', `${header}.e30.AAAA`, async (users) => void ended.push(users))
        .catch((error: unknown) => error),
    ])
    expect(begun).toMatchObject({ outcome: { result: 'unavailable', server: 'one' } })
    expect([logout instanceof IssuerError, ended, world.signIns.waiting]).toEqual([true, [], 0])
  },
)

test('attempts wait for ten minutes, and a browser has a few', async () => {
  await world.provider('one', peer, {}, {}, SECRET)
  const first = await answered(await begin())
  for (let count = 0; count < MAX_OF_NAME; count++) await begin()
  expect(world.signIns.waiting).toBe(MAX_OF_NAME)
  expect(await world.signIns.finish('one', first, BROWSER)).toMatchObject({ result: 'stale' })
  const late = await answered(await begin())
  world.clock.ahead = ATTEMPT_MS
  expect(await world.signIns.finish('one', late, BROWSER)).toMatchObject({ result: 'stale' })
  expect(world.signIns.waiting).toBe(0)
})

test('without a refresh token the sign-in lasts as long as the policy says', async () => {
  await world.provider('one', peer, { id: 'short', lifetime: 7 }, {}, SECRET)
  const { providerSession } = person(await world.signIn('one', peer, 'u1'))
  const { begin: began, ends } = (await world.temp.store.providerSessions.find(providerSession!))!
  expect(Math.round((ends - began) / 60_000)).toBe(7)
})

function check(users: string[] = []) {
  const lost: string[] = []
  const { registry, sessions, temp, clock } = world
  const provider = new ProviderCheck({
    ...{ store: temp.store, registry, sessions, users: () => users },
    now: () => Date.now() + clock.ahead,
    onLost: (user, reason) => lost.push(`${user}: ${reason}`),
  })
  return provider.run().then(() => lost)
}

test('a person is asked about by refresh: tokens rotate, groups and names follow', async () => {
  await world.provider('one', peer, {}, {}, SECRET)
  const { store } = world.temp
  const { user, providerSession } = person(await world.signIn('one', peer, 'u1'))
  const before = (await store.providerSessions.find(providerSession!))!
  peer.persons.set('u1', { name: 'alicia', groups: ['ops', 'more'] })
  expect([await check(), await check()]).toEqual([[], []])
  const after = (await store.providerSessions.find(providerSession!))!
  expect((await store.users.find(user.id))?.userName).toBe('alicia@one')
  const tokens = [before, after].map((one) => world.sessions.tokensOf(one).refreshToken)
  expect(tokens[0]).not.toBe(tokens[1])
  expect(after.ends).toBeGreaterThan(before.ends)
  peer.persons.set('u1', { name: 'alicia', groups: [] })
  expect(await check()).toEqual(['alicia@one: unmapped'])
  expect(await store.users.find(user.id)).toBeUndefined()
})

test('a person that the provider has disabled loses the session; one that it cannot tell about does not', async () => {
  await world.provider('one', peer, {}, {}, SECRET)
  const { providerSession } = person(await world.signIn('one', peer, 'u1'))
  const session = () => world.temp.store.providerSessions.find(providerSession!)
  for (const [at, status] of [
    ['/token', 500],
    ['/token', 'silence'],
    ['/me', 500],
  ] as const) {
    peer.fault = (path) => (path === at ? status : undefined)
    await world.within('one', status === 'silence' ? SHORT_MS : PATIENCE_MS)
    expect([await check(), (await session())?.id]).toEqual([[], providerSession])
  }
  peer.fault = undefined
  expect([await check(), (await session())?.id]).toEqual([[], providerSession])
  await peer.disable('u1')
  expect(await check()).toEqual([expect.stringContaining('alice@one: invalid_grant')])
  expect(await session()).toBeUndefined()
})

test('a refresh token that does not rotate is used again', async () => {
  await world.provider('two', other, {}, {}, SECRET)
  const { providerSession } = person(await world.signIn('two', other, 'u1'))
  expect([await check(), await check()]).toEqual([[], []])
  expect(await world.temp.store.providerSessions.find(providerSession!)).toBeDefined()
})

test('sessions that nothing rests on are forgotten, and those whose time has come', async () => {
  await world.provider('one', peer, { id: 'short' }, {}, SECRET)
  const { user, providerSession } = person(await world.signIn('one', peer, 'u1'))
  const isThere = async () => (await world.temp.store.providerSessions.find(providerSession!)) !== undefined
  world.clock.ahead = 20 * 60_000
  await check([user.id])
  expect(await isThere()).toBe(true)
  await check()
  expect(await isThere()).toBe(false)
  world.clock.ahead = 0
  const next = person(await world.signIn('one', peer, 'u1'))
  world.clock.ahead = 61 * 60_000
  await check([next.user.id])
  expect(await world.temp.store.providerSessions.list()).toEqual([])
})
