/** Access tokens at the API: of oidc-provider, and of jobs of CI as their platforms make them. */
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  AUDIENCE,
  OPAQUE_AUDIENCE,
  type PeerProvider,
  secretOf,
  startProvider,
} from '../peers/oidc/provider.ts'
import { type CertificateFiles, certificateFiles } from '../peers/vnc/certificate.ts'
import { newService } from '../store/fixture.ts'
import { type Harness, startHarness } from './harness.ts'

let h: Harness
let peer: PeerProvider
let cookie: string
let jobs: Jobs

/** An issuer of tokens for jobs, with keys that rotate. */
interface Jobs {
  issuer: string
  ca: string
  requests: () => number
  rotate(): Promise<void>
  token(claims?: object, audience?: string): Promise<string>
  stop(): void
}
async function startJobs(): Promise<Jobs> {
  const files: CertificateFiles = await certificateFiles()
  let count = 0
  let pair = await generateKeyPair('RS256')
  const server: Server = createServer(files.pem, async ({ url }, answer) => {
    count++
    const key = { ...(await exportJWK(pair.publicKey)), kid: `k${generation}` }
    const found = { issuer, jwks_uri: `${issuer}/keys` }
    answer.end(JSON.stringify(url === '/keys' ? { keys: [key] } : found))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  let generation = 1
  return {
    issuer,
    ca: files.pem.cert,
    requests: () => count,
    async rotate() {
      pair = await generateKeyPair('RS256')
      generation++
    },
    token: (claims = {}, audience = AUDIENCE) =>
      new SignJWT({
        repository: 'acme/app',
        ref: 'refs/heads/main',
        ...claims,
      })
        .setProtectedHeader({ alg: 'RS256', kid: `k${generation}`, typ: 'JWT', x5t: 'thumb' })
        .setSubject('repo:acme/app:ref:refs/heads/main')
        .setIssuer(issuer)
        .setAudience(audience)
        .setIssuedAt()
        .setExpirationTime('5m')
        .sign(pair.privateKey),
    stop() {
      server.closeAllConnections()
      server.close()
      files.remove()
    },
  }
}

beforeAll(async () => {
  ;[h, peer, jobs] = await Promise.all([
    startHarness(),
    startProvider({ alice: ['ops', 'audit'], bob: [] }),
    startJobs(),
  ])
  // Tokens are of the real time.
  h.clock.now = Date.now()
  cookie = await h.signIn()
  for (const group_name of ['staff', 'ci']) await must('POST', '/usergroups', { group_name })
  await must('POST', '/externalauths', {
    authentication_name: 'login',
    type: 'OIDC',
    oidc: {
      issuer: peer.issuer,
      audience: AUDIENCE,
      ca_certificates: peer.ca,
      scopes: ['bastion.read=auditor', 'bastion.all=product_administrator'],
    },
  })
  await must('POST', '/authdomains', { domain_name: 'corp', type: 'OIDC', external_auths: ['login'] })
  await must('POST', '/authdomains/corp/mappings', {
    user_group: 'staff',
    external_group: 'ops',
    profile: 'operator',
  })
  await must('POST', '/externalauths', {
    authentication_name: 'actions',
    type: 'OIDC',
    oidc: {
      issuer: jobs.issuer,
      audience: AUDIENCE,
      ca_certificates: jobs.ca,
      token_type: 'jwt',
      bound_claims: ['repository=acme/app', 'ref=refs/heads/main'],
    },
  })
  await must('POST', '/authdomains', { domain_name: 'jobs', type: 'OIDC', external_auths: ['actions'] })
  await must('POST', '/authdomains/jobs/mappings', { user_group: 'ci', external_group: '*' })
}, 300_000)
afterAll(async () => {
  jobs?.stop()
  await Promise.all([h?.close(), peer?.stop()])
})

async function must(method: string, path: string, body?: object) {
  const answer = await h.call(method, path, { cookie, ...(body && { body }) })
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.text}`)
  return answer.body
}
const as = (token: string, method = 'GET', path = '/session', more: Record<string, string> = {}) =>
  h.call(method, path, {
    headers: { authorization: `Bearer ${token}`, ...more },
    ...(method !== 'GET' && { body: {} }),
  })
const lastReason = async () => (await h.events('auth.failure')).at(-1)?.['reason']

test('a token of a client is its person, with the lower right of mapping and scope', async () => {
  const all = await as(await peer.token('alice', 'bastion.all'))
  expect(all.body).toMatchObject({ user: 'alice@corp', profile: 'operator+product_administrator' })
  const read = await as(await peer.token('alice', 'bastion.read'))
  expect(read.body.profile).toBe('operator+auditor')
  const own = (await must('GET', '/profiles/operator')).rights
  const limit = (await must('GET', '/profiles/auditor')).rights
  const levels = ['none', 'view', 'modify', 'execute']
  for (const [feature, level] of Object.entries<string>(own)) {
    expect(all.body.rights[feature]).toBe(level)
    const lower = levels[Math.min(levels.indexOf(level), levels.indexOf(limit[feature]))]
    expect([feature, read.body.rights[feature]]).toEqual([feature, lower])
  }
  const events = await h.events('auth.success')
  const mine = events.filter(({ user }) => user === 'alice@corp')
  expect(mine).toMatchObject([{ method: 'bearer', protocol: 'HTTPS' }])
})

test('a token without any of the scopes may do nothing', async () => {
  const token = await peer.token('alice')
  expect(Object.values((await as(token)).body.rights).every((level) => level === 'none')).toBe(true)
  expect((await as(token, 'GET', '/targets')).status).toBe(403)
})

test('a person whom no mapping knows does not get in', async () => {
  const answer = await as(await peer.token('bob', 'bastion.all'))
  expect([answer.status, answer.body.error]).toEqual([401, 'authentication_required'])
  expect(answer.headers['www-authenticate']).toBe('Bearer error="invalid_token"')
  expect(await lastReason()).toMatch(/^bob: no mapping of corp matches/)
})

test('whatever is wrong is answered alike, and the audit log says which check', async () => {
  const good = await peer.token('alice', 'bastion.all')
  const bad = [
    ['', /form/],
    ['x.y.z', /form/],
    [`${good.slice(0, -8)}AAAAAAAA`, /^login: token refused by signature/],
    [await jobs.token({}, 'https://other.lab'), /^actions: token refused by audience/],
    [await jobs.token({ ref: 'refs/heads/evil' }), /^actions: token refused by bound_claim: ref is/],
    [await jobs.token({ nonce: 'n' }), /^actions: token refused by id_token/],
  ] as const
  const answers = new Set<string>()
  for (const [token, reason] of bad) {
    const { status, headers, body } = await as(token)
    answers.add(JSON.stringify([status, headers['www-authenticate'], body]))
    expect(await lastReason()).toMatch(reason)
  }
  const { status, headers, body } = await as(good, 'GET', '/session', { 'x-auth-user': 'admin' })
  answers.add(JSON.stringify([status, headers['www-authenticate'], body]))
  expect(await lastReason()).toBe('a token beside an API key or another user')
  expect(answers.size).toBe(1)
  expect(JSON.stringify(await h.events()) + h.log.join('')).not.toContain(good.slice(-40))
})

test('a job checks a secret out without a stored key, and a token makes no API key', async () => {
  const device = await h.store.devices.create({ deviceName: 'srv1', host: '192.0.2.1', description: '' })
  await h.store.services.create(newService(device.id))
  await must('POST', '/accounts', {
    account_name: 'deploy',
    account_login: 'deploy',
    device: 'srv1',
    credentials: [{ type: 'password', password: 'canary-7f31' }],
  })
  const target = { group_name: 'deploys', password_retrieval: { accounts: ['deploy@local@srv1'] } }
  await must('POST', '/targetgroups', target)
  await must('POST', '/authorizations', {
    user_group: 'ci',
    target_group: 'deploys',
    authorize_password_retrieval: true,
  })
  const token = await jobs.token()
  const answer = await as(token, 'POST', '/accounts/deploy@local@srv1/checkout')
  expect(answer.body).toMatchObject({ login: 'deploy', password: 'canary-7f31' })
  // The policy would let it last longer than the token.
  const { exp } = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString())
  expect(Date.parse(answer.body.expires)).toBe(exp * 1000)
  expect(await h.events('checkout.out')).toMatchObject([
    { user: 'repo%3Aacme%2Fapp%3Aref%3Arefs%2Fheads%2Fmain@jobs', account: 'deploy' },
  ])
  const elsewhere = await jobs.token({ repository: 'evil/app' })
  expect((await as(elsewhere, 'POST', '/accounts/deploy@local@srv1/checkout')).status).toBe(401)
  const admin = { user_group: 'ci', external_group: 'x', profile: 'product_administrator' }
  await must('POST', '/authdomains/jobs/mappings', admin)
  const key = await h.call('POST', '/apikeys', {
    headers: { authorization: `Bearer ${await jobs.token({ groups: ['x'] })}` },
    body: { key_name: 'stays', profile: 'product_administrator' },
  })
  expect([key.status, key.body.error]).toEqual([403, 'key_is_bound'])
})

test('where a second factor is required the issuer has to say that there was one', async () => {
  await must('PUT', '/usergroups/ci', { second_factor: 'required' })
  expect((await as(await jobs.token())).status).toBe(401)
  expect(await lastReason()).toMatch(/amr of the token does not say mfa/)
  expect((await as(await jobs.token({ amr: ['pwd', 'mfa'] }))).status).toBe(200)
  await must('PUT', '/usergroups/ci', { second_factor: 'none' })
})

test('a token that fits two domains is refused', async () => {
  const { oidc } = await must('GET', '/externalauths/actions')
  await must('POST', '/externalauths', {
    authentication_name: 'twice',
    type: 'OIDC',
    oidc: { ...oidc, bound_claims: ['repository=acme/app'] },
  })
  await must('POST', '/authdomains', { domain_name: 'two', type: 'OIDC', external_auths: ['twice'] })
  expect((await as(await jobs.token())).status).toBe(401)
  expect(await lastReason()).toMatch(/several domains take it: jobs, two/)
  await must('DELETE', '/authdomains/two')
  expect((await as(await jobs.token())).status).toBe(200)
})

test('the issuer is asked about an opaque token, and says whose it is', async () => {
  const auth = { authentication_name: 'asked', type: 'OIDC', client_secret: secretOf('bob') }
  const oidc = { issuer: peer.issuer, ca_certificates: peer.ca, token_type: 'opaque', client_id: 'bob' }
  await must('POST', '/externalauths', { ...auth, oidc: { ...oidc, audience: OPAQUE_AUDIENCE } })
  await must('POST', '/authdomains', { domain_name: 'asking', type: 'OIDC', external_auths: ['asked'] })
  await must('POST', '/authdomains/asking/mappings', { user_group: 'staff', external_group: 'ops' })
  const token = await peer.token('alice', 'bastion.all', OPAQUE_AUDIENCE)
  expect(token).not.toContain('.')
  expect((await as(token)).body).toMatchObject({ user: 'alice@asking', profile: 'user' })
  expect((await as(`${token}x`)).status).toBe(401)
  expect(await lastReason()).toMatch(/^asked: token refused by active/)
  await must('PUT', '/externalauths/asked', { client_secret: 'another client secret' })
  expect((await as(token)).status).toBe(503)
  await must('DELETE', '/authdomains/asking')
})

test('an issuer whose keys cannot be read is no failure', async () => {
  await jobs.rotate()
  // A changed object begins anew, without the keys that were read.
  await must('PUT', '/externalauths/actions', { oidc: { ca_certificates: peer.ca } })
  const answer = await as(await jobs.token())
  expect([answer.status, answer.body.error]).toEqual([503, 'sign_in_unavailable'])
  expect((await h.events('auth.unavailable')).at(-1)).toMatchObject({ method: 'bearer' })
  await must('PUT', '/externalauths/actions', { oidc: { ca_certificates: jobs.ca } })
  const before = jobs.requests()
  const token = await jobs.token()
  const answers = await Promise.all(Array.from({ length: 20 }, () => as(token)))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  expect(jobs.requests() - before).toBe(2)
})

test('passwords, codes and names are not asked of an issuer', async () => {
  const refused = async (method: string, path: string, body: object, field: string) => {
    const answer = await h.call(method, path, { cookie, body })
    expect([answer.status, answer.body.details?.[0]?.field]).toEqual([400, field])
  }
  await refused('PUT', '/authdomains/corp', { is_default: true }, 'is_default')
  await refused('PUT', '/authdomains/corp', { secondary_auth: ['login'] }, 'secondary_auth')
  await refused('POST', '/users', { user_name: 'u', user_auths: ['login'] }, 'user_auths/0')
  const oidc = { issuer: 'https://login.lab', audience: 'b' }
  const auth = { authentication_name: 'bad', type: 'OIDC' }
  const bad = [
    [{ ...oidc, issuer: 'http://login.lab' }, 'oidc/issuer'],
    [{ ...oidc, issuer: 'https://login.lab/?a' }, 'oidc/issuer'],
    [{ ...oidc, audience: '' }, 'oidc/audience'],
    [{ ...oidc, token_type: 'jwt' }, 'oidc/bound_claims'],
    [{ ...oidc, scopes: ['a=gone'] }, 'oidc/scopes/0'],
    [{ ...oidc, ca_certificates: 'x' }, 'oidc/ca_certificates'],
  ] as const
  for (const [options, field] of bad)
    await refused('POST', '/externalauths', { ...auth, oidc: options }, field)
  await refused('POST', '/externalauths', { ...auth, oidc, host: 'other.lab' }, 'host')
  await refused('POST', '/externalauths', { ...auth, type: 'LDAP', ldap: { base_dn: 'dc=lab' } }, 'host')
  const place = await must('POST', '/externalauths', { ...auth, oidc, host: 'login.lab' })
  expect(place).toMatchObject({
    host: 'login.lab',
    port: null,
    oidc: { token_type: 'at+jwt', user_claim: 'sub' },
  })
  const signIn = await h.call('POST', '/session', { body: { user: 'alice@corp', password: 'x' } })
  expect(signIn.status).toBe(401)
})
