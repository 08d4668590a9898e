/**
 * Attack cases 26 to 31 once more, by whichever method a person has signed in, and what servers of sign-ins let a client
 * guess: real ones behind the API. Their secrets are planted in a whole broker by canaries.test.ts.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LOCKOUT_LIMITS } from '../../src/identity/lockout.ts'
import { type Answer, type Harness, startHarness } from '../api/harness.ts'
import { LDAP_ADMIN, type Slapd, SUFFIX, startSlapd } from '../peers/directory.ts'
import { type FreeRadius, RADIUS_SECRET, startFreeRadius } from '../peers/freeradius.ts'
import { type MitKdc, REALM, startKdc } from '../peers/kerberos.ts'
import { AUDIENCE, type PeerProvider, startProvider } from '../peers/oidc/provider.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { provision } from '../peers/provision.ts'
import { TacacsPeer } from '../peers/tacacs.ts'
import { certificateFiles } from '../peers/vnc/certificate.ts'
import { Canaries } from './canaries.ts'
import { type Listening, sendAsIs } from './requests.ts'

const BASE = '/api/v3.12'
const PASSWORD = 'Älice-Pass1'
const WRONG = 'wrong-Pass-of-alice'
const LOCAL = 'a password of hers'
const CHECKOUT = '/accounts/root@local@srv1/checkout'
const SESSION = '01K9T5RZ8Q4W6X2C3V1B0N7M50'
/** Types of the servers that judge a password; each has a domain of its own. */
const SERVERS = ['LDAP', 'RADIUS', 'TACACS', 'KERBEROS'] as const
const PASSWORDS = ['local', ...SERVERS, 'local and RADIUS'] as const
const COOKIES = [...PASSWORDS, 'ticket'] as const
const METHODS = [...COOKIES, 'token'] as const
type Method = (typeof METHODS)[number]
const PEERS = ['slapd', 'freeradius', 'krb5kdc', 'kdb5_util', 'kadmin.local', 'kinit', 'curl'] as const
const NAMES: Readonly<Record<Method, string>> = {
  local: 'anna',
  LDAP: 'alice@ldap',
  RADIUS: 'alice@radius',
  TACACS: 'alice@tacacs',
  KERBEROS: 'alice@kerberos',
  'local and RADIUS': 'alice',
  // The same person as by the password.
  ticket: 'alice@kerberos',
  token: 'alice@oidc',
}

describeWithPeers('whatever the method of sign-in', PEERS, () => {
  let h: Harness
  let api: Listening
  let slapd: Slapd
  let radius: FreeRadius
  let tacacs: TacacsPeer
  let kdc: MitKdc
  let provider: PeerProvider
  let admin: string
  const canaries = new Canaries()
  /** Headers of who has signed in by each method. */
  const as = new Map<Method, Record<string, string>>()
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-methods-'))
  let answers = ''

  async function must<T>(method: string, path: string, body?: object): Promise<T> {
    const { status, body: said, text } = await h.call(method, path, { cookie: admin, body })
    if (status >= 300) throw new Error(`${method} ${path}: ${text}`)
    return said as T
  }
  async function send(headers: Record<string, string>, method: string, path: string, body?: object) {
    const answer = await h.call(method, path, { headers, body })
    answers += `${JSON.stringify(answer.headers)}\n${answer.text}\n`
    return answer
  }
  const trial = async (path: string, body: object) => {
    const { steps } = await must<{ steps: { step: string; ok: boolean; detail: string }[] }>(
      'POST',
      `${path}/test`,
      body,
    )
    return steps.map(({ step, ok, detail }) => (ok ? step : `${step} failed: ${detail}`))
  }

  beforeAll(async () => {
    const files = await certificateFiles()
    ;[h, slapd, radius, tacacs, kdc, provider] = await Promise.all([
      startHarness(),
      startSlapd({ alice: PASSWORD, nobody: PASSWORD }, files),
      startFreeRadius({ host: '127.0.0.1', signsReplies: true }),
      TacacsPeer.start({
        key: canaries.plain('the shared secret of TACACS+'),
        users: { alice: PASSWORD, nobody: PASSWORD },
        args: { alice: ['groups=staff'] },
      }),
      startKdc(),
      startProvider({ alice: [] }),
    ])
    // Tickets and tokens are of the real time.
    h.clock.now = Date.now()
    await h.api.listen({ host: '127.0.0.1', port: 0 })
    mkdirSync(join(folder, 'tls'))
    writeFileSync(join(folder, 'tls', 'cert.pem'), h.cert)
    api = { ports: { https: (h.api.server.address() as AddressInfo).port }, dataFolder: folder }
    admin = await h.signIn()
    await kdc.admin(`addprinc -pw "${PASSWORD}" alice`)
    await kdc.admin('addprinc -randkey HTTP/127.0.0.1')
    const keytab = await kdc.keytab('HTTP/127.0.0.1')
    const client = readFileSync(files.key, 'utf8')
    for (const [name, secret] of [
      ['the bind password', LDAP_ADMIN.password],
      ['the shared secret of RADIUS', RADIUS_SECRET],
      ['the keys of the keytab', Buffer.from(keytab, 'base64').subarray(-32)],
      ['the key of the client', client.split('\n')[2]!],
      ['the password of a person', PASSWORD],
      ['a wrong password of a person', WRONG],
      ['a code of a person', 'Olaf-Pass1'],
      ['the password of a local user', LOCAL],
    ] as const)
      canaries.add(name, secret)
    const options = {
      LDAP: {
        port: slapd.ldaps,
        bind_password: LDAP_ADMIN.password,
        client_key: client,
        ldap: {
          base_dn: SUFFIX,
          bind_dn: LDAP_ADMIN.login,
          ca_certificates: files.pem.cert,
          client_certificate: files.pem.cert,
        },
      },
      RADIUS: { port: radius.port, shared_secret: RADIUS_SECRET },
      TACACS: { port: tacacs.port, shared_secret: tacacs.options.key },
      KERBEROS: { port: kdc.port, keytab, kerberos: { realm: REALM, service_principal: 'HTTP/127.0.0.1' } },
    }
    files.remove()
    const credentials = [{ type: 'password' as const, password: 'of a target' }]
    await provision({ must }, { port: 9, account: 'root', credentials, subprotocols: ['SSH_SHELL'] })
    await must('PUT', '/checkoutpolicies/default', { enable_lock: true })
    const retrieval = { accounts: ['root@local@srv1'] }
    await must('POST', '/targetgroups', { group_name: 'secrets', password_retrieval: retrieval })
    await must('POST', '/authorizations', {
      user_group: 'ops1-srv1-users',
      target_group: 'secrets',
      authorize_sessions: false,
      authorize_password_retrieval: true,
    })
    const domain = async (type: string, server: object, externalGroup: string) => {
      const name = type.toLowerCase()
      await must('POST', '/externalauths', { authentication_name: name, type, ...server })
      await must('POST', '/authdomains', { domain_name: name, type, external_auths: [name] })
      const mapping = { user_group: 'ops1-srv1-users', external_group: externalGroup }
      await must('POST', `/authdomains/${name}/mappings`, mapping)
    }
    const groups = { LDAP: '*', RADIUS: 'dba, senior', TACACS: 'staff', KERBEROS: '*' }
    for (const type of SERVERS)
      await domain(type, { host: '127.0.0.1', timeout: 5, ...options[type] }, groups[type])
    const { issuer, ca } = provider
    await domain('OIDC', { oidc: { issuer, audience: AUDIENCE, ca_certificates: ca } }, '*')
    const local = { password: LOCAL, profile: 'user', groups: ['ops1-srv1-users'] }
    await must('POST', '/users', { ...local, user_name: 'anna' })
    await must('POST', '/users', { ...local, user_name: 'alice', secondary_auth: ['radius'] })
    const about = { user: 'ops1', sourceIp: '192.0.2.1', protocol: 'SSH', account: 'root', domain: 'local' }
    await h.store.sessions.create({
      ...{ ...about, id: SESSION, begin: 0, subprotocols: [], device: 'srv1', service: 'ssh' },
      ...{ targetHost: '192.0.2.2', authorization: 'a', isRecorded: true, bytesIn: 0, bytesOut: 0 },
    } as never)
  })
  afterAll(async () => {
    await Promise.all([slapd?.stop(), radius?.stop(), tacacs?.close(), kdc?.stop(), provider?.stop()])
    await h?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const session = (body: object): Promise<Answer> => send({}, 'POST', '/session', body)
  const answerTo = ({ body }: Answer, answer: string): Promise<Answer> =>
    session({ challenge: body.challenge.id, answers: [answer] })
  async function signedIn(method: (typeof PASSWORDS)[number]): Promise<Answer> {
    const password = method.startsWith('local') ? LOCAL : PASSWORD
    const begun = await session({ user: NAMES[method], password })
    return method === 'local and RADIUS' ? await answerTo(begun, PASSWORD) : begun
  }
  async function cookieByTicket(): Promise<string> {
    await kdc.ticketOf('alice', PASSWORD)
    const url = `https://127.0.0.1:${api.ports.https}${BASE}/session`
    const args = ['-s', '-i', '--cacert', join(folder, 'tls', 'cert.pem'), '--negotiate', '--user', ':']
    const { stdout } = await run(findProgram('curl'), [...args, '--json', '{}', url], { env: kdc.env })
    return /^set-cookie: (sallyport_session=[^;]+)/im.exec(stdout)?.[1] ?? stdout
  }

  test('trials say step by step what the real server did, and what is wrong with it', async () => {
    const alice = { user_name: 'alice', password: PASSWORD }
    expect(await trial('/externalauths/radius', {})).toEqual(['reached', 'answered'])
    const steps = ['reached', 'answered', 'signed_in', 'groups', 'mapped']
    expect(await trial('/authdomains/radius', alice)).toEqual(steps)
    expect((await trial('/authdomains/tacacs', alice)).slice(-3)).toEqual(steps.slice(-3))
    expect((await trial('/authdomains/kerberos', alice)).slice(-2)).toEqual(['signed_in', 'mapped'])
    for (const name of ['radius', 'tacacs', 'kerberos']) {
      const found = await trial(`/externalauths/${name}`, { ...alice, password: WRONG })
      expect(found.at(-1)).toMatch(/^signed_in failed: /)
    }
  })

  test('each signs in under the one name that it has by this method, and no other', async () => {
    for (const method of PASSWORDS) {
      const answer = await signedIn(method)
      expect([method, answer.status, answer.text]).toEqual([method, 200, expect.any(String)])
      as.set(method, { cookie: String(answer.headers['set-cookie']).split(';')[0]! })
    }
    as.set('ticket', { cookie: await cookieByTicket() })
    as.set('token', { authorization: `Bearer ${await provider.token('alice')}` })
    for (const method of METHODS) {
      const { body } = await send(as.get(method)!, 'GET', '/session')
      expect(body).toMatchObject({ user: NAMES[method], profile: 'user' })
    }
    const ids = await Promise.all(METHODS.map(async (one) => (await h.store.users.find(NAMES[one]))?.id))
    expect([new Set(ids).size, ids.includes(undefined)]).toEqual([new Set(Object.values(NAMES)).size, false])
  })

  test('a wrong password, an unknown name and a person without a mapping get the same answer', async () => {
    const said = async (user: string, password: string) => {
      const { status, text } = await session({ user, password })
      return `${status} ${text}`
    }
    const wrong = await said('anna', WRONG)
    expect(wrong).toMatch(/^401 .*invalid_credentials/)
    for (const method of PASSWORDS)
      expect([method, await said(NAMES[method], WRONG)]).toEqual([method, wrong])
    for (const type of SERVERS)
      for (const [name, password] of [
        ['no-such', PASSWORD],
        ['*)(uid=*', PASSWORD],
        ['alice', ''],
      ] as const) {
        const user = `${name}@${type.toLowerCase()}`
        expect([user, await said(user, password)]).toEqual([user, wrong])
      }
    // TACACS+ gives this one no group, FreeRADIUS lets that one into another service, and tokens are no passwords.
    expect(await said('nobody@tacacs', PASSWORD)).toBe(wrong)
    expect(await said('framed@radius', 'Framed-Pass1')).toBe(wrong)
    expect(await said('alice@oidc', PASSWORD)).toBe(wrong)
    const forged = { authorization: `${as.get('token')!['authorization']!.slice(0, -4)}AAAA` }
    expect((await send(forged, 'GET', '/session')).status).toBe(401)
  })

  test('a server that asks again after each wrong code allows as many as the lock-out does', async () => {
    const olaf = { user: 'olaf@radius', password: 'Olaf-Pass1' }
    const prompt = ({ body }: Answer): string | undefined => body.challenge?.prompts[0]?.text
    const before = (await h.events('auth.failure')).length
    let answer = await session(olaf)
    let wrong = 0
    for (; prompt(answer) === 'Your code: '; wrong++) answer = await answerTo(answer, `00000${wrong}`)
    expect([wrong, answer.status]).toEqual([LOCKOUT_LIMITS.pairFailures, 401])
    const failures = (await h.events('auth.failure')).slice(before)
    const each = { user: 'olaf@radius', reason: 'wrong_password' }
    expect(failures).toMatchObject(Array(LOCKOUT_LIMITS.pairFailures).fill(each))
    expect(await h.events('auth.locked')).toMatchObject([{ user: 'olaf@radius' }])
    expect((await session(olaf)).status).toBe(401)
    expect((await h.events('auth.failure')).at(-1)).toMatchObject({ reason: 'locked' })
  })

  test('the objects of others, live watching and administration are as closed to each', async () => {
    const [other] = await must<{ id: string }[]>('GET', '/users?q=user_name=ops1')
    const upgrade = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': `${'A'.repeat(22)}==`,
    }
    const live = `${BASE}/sessions/${SESSION}/live`
    for (const [verb, path, status, body] of [
      ['GET', '/users', 403],
      ['GET', `/users/${other!.id}`, 403],
      ['PUT', `/users/${other!.id}`, 403, { profile: 'product_administrator' }],
      ['DELETE', `/users/${other!.id}/totp`, 403],
      ['DELETE', `/users/${other!.id}/totp/hold`, 403],
      ['GET', '/sessions', 403],
      ['GET', `/sessions/${SESSION}`, 403],
      ['GET', `/sessions/${SESSION}/recording`, 403],
      ['POST', `/sessions/${SESSION}/kill`, 403, {}],
      ['POST', `/sessions/${SESSION}/invitations`, 404, { mode: 'view', duration: 60 }],
      ['GET', '/apikeys', 403],
      ['POST', '/apikeys', 403, { key_name: 'own', profile: 'product_administrator' }],
      ['POST', '/externalauths/radius/test', 403, {}],
      ['DELETE', '/authdomains/ldap/persons/alice@ldap', 403],
    ] as const)
      for (const method of METHODS) {
        const answer = await send(as.get(method)!, verb, path, body)
        const error = status === 403 ? 'forbidden' : 'not_found'
        expect([method, verb, path, answer.status, answer.body.error]).toEqual([
          ...[method, verb, path, status, error],
        ])
      }
    for (const method of METHODS) {
      const watched = await sendAsIs(api, 'GET', live, { ...as.get(method)!, ...upgrade })
      expect([method, watched.status]).toEqual([method, 403])
    }
    // The one with the right reaches the session, which has ended.
    const watched = await sendAsIs(api, 'GET', live, { cookie: admin, ...upgrade })
    expect(watched.body).toContain('"not_running"')
    expect((await send({ cookie: admin }, 'GET', `/sessions/${SESSION}/recording`)).status).toBe(200)
  })

  test('no way around the path, and no request from another site, counts for any', async () => {
    for (const [path, status] of [
      [`${BASE}/../v3.12/users`, 404],
      [`${BASE}//users`, 404],
      [`${BASE}/%75sers`, 403],
      [`${BASE}/users/`, 403],
      [`${BASE}/session/..%2fusers`, 404],
      [`${BASE}/users;x`, 404],
      [`${BASE.toUpperCase()}/users`, 404],
    ] as const)
      for (const method of METHODS) {
        const answer = await sendAsIs(api, 'GET', path, as.get(method)!)
        expect([method, path, answer.status]).toEqual([method, path, status])
      }
    for (const [headers, status, error] of [
      [{ 'sec-fetch-site': 'cross-site' }, 403, 'cross_site'],
      [{ origin: 'https://evil.test' }, 403, 'cross_site'],
      [{ 'content-type': 'text/plain' }, 415, 'unsupported_media_type'],
    ] as const)
      for (const method of COOKIES) {
        const answer = await send({ ...as.get(method)!, ...headers }, 'POST', CHECKOUT, {})
        expect([method, headers, answer.status, answer.body.error]).toEqual([method, headers, status, error])
      }
  })

  test('one of all that want the same account at once has it, and no other checks it in', async () => {
    const all = await Promise.all(
      METHODS.map(async (method) => ({ method, answer: await send(as.get(method)!, 'POST', CHECKOUT) })),
    )
    const [winner, ...more] = all.filter(({ answer }) => answer.status === 200)
    expect([more.length, ...new Set(all.map(({ answer }) => answer.status))].sort()).toEqual([0, 200, 409])
    const { checkout_id: id } = winner!.answer.body
    for (const method of METHODS.filter((one) => NAMES[one] !== NAMES[winner!.method])) {
      const { status } = await send(as.get(method)!, 'POST', `/checkouts/${id}/checkin`, {})
      expect([method, status]).toEqual([method, 403])
    }
  })

  test('no key acts for a person of a domain, and one that acts for a local user has both profiles’ rights only', async () => {
    const key = { key_name: 'machine', profile: 'auditor' }
    const made = await must<{ api_key: string }>('POST', '/apikeys', key)
    for (const method of METHODS) {
      const both = { 'x-auth-key': made.api_key, 'x-auth-user': NAMES[method] }
      const { status } = await send(both, 'GET', '/sessions')
      expect([method, status]).toEqual([method, method.startsWith('local') ? 403 : 401])
    }
  })

  test('servers that are away are said to be, to nobody that a local password lets in', async () => {
    for (const type of SERVERS) await must('PUT', `/externalauths/${type.toLowerCase()}`, { timeout: 1 })
    await Promise.all([slapd.stop(), radius.stop(), tacacs.close(), kdc.stop()])
    const found = await Promise.all(SERVERS.map(async (method) => (await signedIn(method)).status))
    expect(found).toEqual(SERVERS.map(() => 503))
    expect((await signedIn('local and RADIUS')).status).toBe(503)
    expect((await signedIn('local')).status).toBe(200)
    expect((await h.events('auth.unavailable')).length).toBe(SERVERS.length + 1)
  })

  test('no secret of a server or a person is in the log, an answer, an event or the database', async () => {
    for (const path of ['/externalauths', '/authdomains', '/users', '/sessions'])
      expect((await send({ cookie: admin }, 'GET', path)).status).toBe(200)
    const events = JSON.stringify(await h.events())
    for (const content of [answers, events, h.log.join('\n'), readFileSync(h.database)])
      expect(canaries.in(content)).toEqual([])
  })
})
