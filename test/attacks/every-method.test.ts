/**
 * Attack cases 26 and 28 to 31 once more, by whichever method a person has signed in, and 52 for the secrets of the
 * servers that judge: real ones behind a broker in its own process.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sallyport } from '../e2e/recorded.ts'
import { ADMIN_PASSWORD, type Broker, startBroker } from '../peers/broker.ts'
import { LDAP_ADMIN, type Slapd, SUFFIX, startSlapd } from '../peers/directory.ts'
import { type FreeRadius, RADIUS_SECRET, startFreeRadius } from '../peers/freeradius.ts'
import { type MitKdc, REALM, startKdc } from '../peers/kerberos.ts'
import { describeWithPeers } from '../peers/program.ts'
import { provision } from '../peers/provision.ts'
import { TacacsPeer } from '../peers/tacacs.ts'
import { certificateFiles } from '../peers/vnc/certificate.ts'
import { Canaries } from './canaries.ts'
import { type Answer, sendAsIs, signInAs } from './requests.ts'

const BASE = '/api/v3.12'
const PASSWORD = 'Älice-Pass1'
const WRONG = 'wrong-Pass-of-alice'
const LOCAL = 'a password of hers'
/** Types of the servers; each has a domain of its own. */
const SERVERS = ['LDAP', 'RADIUS', 'TACACS', 'KERBEROS'] as const
const METHODS = ['local', ...SERVERS, 'local and RADIUS'] as const
const PEERS = ['slapd', 'freeradius', 'krb5kdc', 'kdb5_util', 'kadmin.local'] as const

describeWithPeers('whatever the method of sign-in', PEERS, () => {
  let broker: Broker
  let slapd: Slapd
  let radius: FreeRadius
  let tacacs: TacacsPeer
  let kdc: MitKdc
  const canaries = new Canaries()
  const cookies = new Map<string, string>()
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-methods-'))
  let answers = ''

  async function send(cookie: string, method: string, path: string, body?: object, more = {}) {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const answer = await sendAsIs(broker, method, path, { cookie, ...more }, text)
    answers += `${JSON.stringify(answer.headers)}\n${answer.body}\n`
    return answer
  }
  const trial = async (path: string, body: object) => {
    const { status, body: text } = await send(cookies.get('admin')!, 'POST', `${BASE}${path}/test`, body)
    expect(status, text).toBe(200)
    const { steps } = JSON.parse(text) as { steps: { step: string; ok: boolean; detail: string }[] }
    return steps.map(({ step, ok, detail }) => (ok ? step : `${step} failed: ${detail}`))
  }

  beforeAll(async () => {
    const files = await certificateFiles()
    ;[slapd, radius, tacacs, kdc] = await Promise.all([
      startSlapd({ alice: PASSWORD, nobody: PASSWORD }, files),
      startFreeRadius({ host: '127.0.0.1', signsReplies: true }),
      TacacsPeer.start({
        key: canaries.plain('the shared secret of TACACS+'),
        users: { alice: PASSWORD, nobody: PASSWORD },
        args: { alice: ['groups=staff'] },
      }),
      startKdc(),
    ])
    await kdc.admin(`addprinc -pw "${PASSWORD}" alice`)
    await kdc.admin('addprinc -randkey host/bastion.lab.test')
    const keytab = await kdc.keytab('host/bastion.lab.test')
    broker = await startBroker({ config: { log: { level: 'trace', file: '-' } } })
    const client = readFileSync(files.key, 'utf8')
    for (const [name, secret] of [
      ['the bind password', LDAP_ADMIN.password],
      ['the shared secret of RADIUS', RADIUS_SECRET],
      ['the keys of the keytab', Buffer.from(keytab, 'base64').subarray(-32)],
      ['the key of the client', client.split('\n')[2]!],
      ['the password of a person', PASSWORD],
      ['a wrong password of a person', WRONG],
      ['a code of a person', 'Otto-Pass1'],
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
      KERBEROS: {
        port: kdc.port,
        keytab,
        kerberos: { realm: REALM, service_principal: 'host/bastion.lab.test' },
      },
    }
    files.remove()
    const credentials = [{ type: 'password' as const, password: 'of a target' }]
    await provision(broker, { port: 9, account: 'root', credentials, subprotocols: ['SSH_SHELL'] })
    await broker.must('PUT', '/checkoutpolicies/default', { enable_lock: true })
    await broker.must('POST', '/targetgroups', {
      group_name: 'secrets',
      password_retrieval: { accounts: ['root@local@srv1'] },
    })
    await broker.must('POST', '/authorizations', {
      user_group: 'ops1-srv1-users',
      target_group: 'secrets',
      authorize_sessions: false,
      authorize_password_retrieval: true,
    })
    for (const type of SERVERS) {
      const server = { authentication_name: type.toLowerCase(), type, host: '127.0.0.1', timeout: 2 }
      await broker.must('POST', '/externalauths', { ...server, ...options[type] })
      const domain = { domain_name: type.toLowerCase(), type, external_auths: [type.toLowerCase()] }
      await broker.must('POST', '/authdomains', domain)
    }
    for (const type of SERVERS)
      await broker.must('POST', `/authdomains/${type.toLowerCase()}/mappings`, {
        user_group: 'ops1-srv1-users',
        external_group: { LDAP: '*', RADIUS: 'dba, senior', TACACS: 'staff', KERBEROS: '*' }[type],
      })
    const local = { password: LOCAL, profile: 'user', groups: ['ops1-srv1-users'] }
    await broker.must('POST', '/users', { ...local, user_name: 'anna' })
    await broker.must('POST', '/users', { ...local, user_name: 'alice', secondary_auth: ['radius'] })
    cookies.set('admin', await signInAs(broker, 'admin', ADMIN_PASSWORD))
  })
  afterAll(async () => {
    await broker?.stop()
    await Promise.all([slapd?.stop(), radius?.stop(), tacacs?.close(), kdc?.stop()])
    rmSync(folder, { recursive: true, force: true })
  })

  const session = (body: object): Promise<Answer> => send('', 'POST', `${BASE}/session`, body)
  const nameOf = (method: string, person = 'alice') =>
    method === 'local'
      ? 'anna'
      : method === 'local and RADIUS'
        ? 'alice'
        : `${person}@${method.toLowerCase()}`
  async function signedIn(method: (typeof METHODS)[number]): Promise<Answer> {
    const own = method.startsWith('local')
    const begun = await session({ user: nameOf(method), password: own ? LOCAL : PASSWORD })
    if (method !== 'local and RADIUS') return begun
    const { challenge } = JSON.parse(begun.body) as { challenge: { id: string } }
    return await session({ challenge: challenge.id, answers: [PASSWORD] })
  }

  test('trials say step by step what the real server did, and what is wrong with it', async () => {
    const alice = { user_name: 'alice', password: PASSWORD }
    expect(await trial('/externalauths/radius', {})).toEqual(['reached', 'answered'])
    expect(await trial('/authdomains/radius', alice)).toEqual([
      'reached',
      'answered',
      'signed_in',
      'groups',
      'mapped',
    ])
    expect((await trial('/authdomains/tacacs', alice)).slice(-3)).toEqual(['signed_in', 'groups', 'mapped'])
    expect((await trial('/authdomains/kerberos', alice)).slice(-2)).toEqual(['signed_in', 'mapped'])
    for (const name of ['radius', 'tacacs', 'kerberos']) {
      const steps = await trial(`/externalauths/${name}`, { ...alice, password: WRONG })
      expect(steps.at(-1)).toMatch(/^signed_in failed: /)
    }
  })

  test.each(METHODS)('%s signs in, and the name is one user of its own', async (method) => {
    const answer = await signedIn(method)
    expect(answer.status, answer.body).toBe(200)
    expect(JSON.parse(answer.body)).toMatchObject({ user: nameOf(method), profile: 'user' })
    cookies.set(method, answer.headers['set-cookie']![0]!.split(';')[0]!)
    expect(new Set(cookies.values()).size).toBe(cookies.size)
  })

  test('a wrong password, an unknown name and a person without a mapping get the same answer', async () => {
    const said = async (user: string, password: string) => {
      const { status, body } = await session({ user, password })
      return `${status} ${body}`
    }
    const wrong = await said('anna', WRONG)
    expect(wrong).toContain('invalid_credentials')
    for (const method of METHODS) expect([method, await said(nameOf(method), WRONG)]).toEqual([method, wrong])
    for (const type of SERVERS)
      expect([type, await said(nameOf(type, 'no-such'), PASSWORD)]).toEqual([type, wrong])
    // TACACS+ gives this one no group, and FreeRADIUS lets that one into another service.
    expect(await said('nobody@tacacs', PASSWORD)).toBe(wrong)
    expect(await said('framed@radius', 'Framed-Pass1')).toBe(wrong)
  })

  test('the objects of others, live watching and administration are as closed to each', async () => {
    const [other] = await broker.must<{ id: string }[]>('GET', '/users?q=user_name=ops1')
    const first: unknown[] = []
    for (const method of METHODS) {
      const seen: unknown[] = []
      for (const [verb, path, body] of [
        ['GET', '/users'],
        ['GET', `/users/${other!.id}`],
        ['PUT', `/users/${other!.id}`, { profile: 'product_administrator' }],
        ['DELETE', `/users/${other!.id}/totp`],
        ['GET', '/sessions'],
        ['GET', `/sessions/${other!.id}/recording`],
        ['GET', `/sessions/${other!.id}/live`],
        ['POST', `/sessions/${other!.id}/invitations`, { mode: 'view' }],
        ['GET', '/apikeys'],
        ['POST', '/apikeys', { key_name: 'own', profile: 'product_administrator' }],
        ['POST', '/externalauths/radius/test', {}],
        ['POST', `/checkouts/${other!.id}/checkin`, {}],
      ] as const) {
        const { status } = await send(cookies.get(method)!, verb, `${BASE}${path}`, body)
        expect([method, verb, path, status >= 400 && status < 500]).toEqual([method, verb, path, true])
        seen.push([verb, path, status])
      }
      if (first.length === 0) first.push(...seen)
      expect([method, ...seen]).toEqual([method, ...first])
    }
  })

  test('no way around the path, and no request from another site, counts for any', async () => {
    for (const method of METHODS) {
      const cookie = cookies.get(method)!
      for (const path of [
        `${BASE}/../v3.12/users`,
        `${BASE}//users`,
        `${BASE}/%75sers`,
        `${BASE}/users/`,
        `${BASE}/session/..%2fusers`,
        `${BASE}/users;x`,
        `${BASE.toUpperCase()}/users`,
      ])
        expect((await send(cookie, 'GET', path)).status, `${method} ${path}`).toBeGreaterThanOrEqual(400)
      const account = `${BASE}/accounts/root@local@srv1/checkout`
      for (const headers of [
        { 'sec-fetch-site': 'cross-site' },
        { origin: 'https://evil.test' },
        { 'content-type': 'text/plain' },
      ])
        expect(
          (await send(cookie, 'POST', account, {}, headers)).status,
          `${method} ${JSON.stringify(headers)}`,
        ).toBeGreaterThanOrEqual(400)
    }
  })

  test('one of all that want the same account at once has it, and no other checks it in', async () => {
    const path = `${BASE}/accounts/root@local@srv1/checkout`
    const all = await Promise.all(
      METHODS.map(async (method) => ({ method, answer: await send(cookies.get(method)!, 'POST', path) })),
    )
    const [winner, ...more] = all.filter(({ answer }) => answer.status === 200)
    expect([more.length, ...new Set(all.map(({ answer }) => answer.status))].sort()).toEqual([0, 200, 409])
    const { checkout_id: id } = JSON.parse(winner!.answer.body) as { checkout_id: string }
    for (const method of METHODS.filter((one) => one !== winner!.method)) {
      const { status } = await send(cookies.get(method)!, 'POST', `${BASE}/checkouts/${id}/checkin`, {})
      expect([method, status]).toEqual([method, 403])
    }
  })

  test('no key acts for a person of a domain, and one that acts for a local user has both profiles’ rights only', async () => {
    const key = { key_name: 'machine', profile: 'auditor' }
    const made = await broker.must<{ api_key: string }>('POST', '/apikeys', key)
    for (const method of METHODS) {
      const as = { 'x-auth-key': made.api_key, 'x-auth-user': nameOf(method) }
      const { status } = await send('', 'GET', `${BASE}/sessions`, undefined, as)
      expect([method, status]).toEqual([method, method.startsWith('local') ? 403 : 401])
    }
  })

  test('servers that are away are said to be, to nobody that a local password lets in', async () => {
    await Promise.all([slapd.stop(), radius.stop(), tacacs.close(), kdc.stop()])
    for (const method of SERVERS) expect([method, (await signedIn(method)).status]).toEqual([method, 503])
    expect((await signedIn('local and RADIUS')).status).toBe(503)
    expect((await signedIn('local')).status).toBe(200)
  })

  test('no secret of a server or a person is in the log, an answer, a metric, an event, the database or a backup', async () => {
    for (const path of ['/externalauths', '/authdomains', '/users', '/sessions'])
      expect((await send(cookies.get('admin')!, 'GET', `${BASE}${path}`)).status).toBe(200)
    const metrics = await (await fetch(`http://127.0.0.1:${broker.ports.metrics}/metrics`)).text()
    expect(metrics).toContain('sallyport_sign_in_server_duration_seconds_count{type="RADIUS"')
    const backup = join(folder, 'backup')
    const commands = [['backup', backup], ['audit', 'export'], ['export', 'externalauths'], ['check']]
    for (const words of commands) {
      const done = await sallyport(broker, words)
      expect(done.stdout, `${words} ${done.stderr}`).not.toBe('')
      expect(canaries.in(done.stdout + done.stderr), words.join(' ')).toEqual([])
    }
    expect(broker.log()).toContain('"event":"auth.unavailable"')
    for (const content of [broker.log(), answers, metrics]) expect(canaries.in(content)).toEqual([])
    for (const place of [backup, broker.dataFolder]) expect(canaries.below(place)).toEqual([])
  })
})
