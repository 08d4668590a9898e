/** Signing in at the API by tickets of MIT's KDC, which curl shows. */
import { writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildInit, buildMechanismList } from '../../proxies/bytes/spnego.ts'
import { LOCKOUT_LIMITS } from '../../src/identity/lockout.ts'
import { KERBEROS_OID } from '../../src/kerberos/gss.ts'
import { firstToken, type Shown } from '../kerberos/client.ts'
import { type MitKdc, REALM, startKdc } from '../peers/kerberos.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { ADMIN, type Harness, startHarness } from './harness.ts'

let h: Harness
let kdc: MitKdc
let url: string
let cookie: string

const must = async (method: string, path: string, body: object) => {
  const answer = await h.call(method, path, { cookie, body })
  if (answer.status >= 300) throw new Error(`${path}: ${answer.text}`)
  return answer.body
}
const curl = (...options: string[]) => asking(['--json', '{}', `${url}/api/v3.12/session`], options)
async function asking(
  what: readonly string[],
  options: readonly string[] = [],
): Promise<{ status: number; headers: string; body: string }> {
  const args = [
    '--silent',
    '--show-error',
    '--include',
    '--cacert',
    h.certPath,
    '--negotiate',
    '--user',
    ':',
    ...options,
  ]
  const { code, stdout, stderr } = await run(findProgram('curl'), [...args, ...what], {
    env: kdc.env,
  })
  if (code !== 0) throw new Error(`curl: ${stderr}`)
  const at = stdout.lastIndexOf('\r\n\r\n')
  const heads = stdout.slice(0, at).split('\r\n\r\n')
  const headers = heads.at(-1)!.toLowerCase()
  return { status: Number(/^http\/\S+ (\d+)/.exec(headers)?.[1]), headers, body: stdout.slice(at + 4) }
}
const spnego = (shown: Shown) =>
  buildInit(buildMechanismList([KERBEROS_OID]), firstToken({ made: Date.now(), ...shown }))

describeWithPeers('tickets', ['krb5kdc', 'kdb5_util', 'kadmin.local', 'kinit', 'curl'], () => {
  beforeAll(async () => {
    ;[h, kdc] = await Promise.all([startHarness(), startKdc()])
    cookie = await h.signIn()
    await h.api.listen({ host: '127.0.0.1', port: 0 })
    url = `https://127.0.0.1:${(h.api.server.address() as AddressInfo).port}`
    writeFileSync(h.certPath, h.cert)
    for (const name of ['alice', 'carol']) await kdc.admin(`addprinc -pw Person-Pass1 ${name}`)
    for (const name of ['HTTP/127.0.0.1', 'HTTP/localhost']) await kdc.admin(`addprinc -randkey ${name}`)
    await must('POST', '/usergroups', { group_name: 'staff' })
  }, 300_000)
  afterAll(async () => {
    await Promise.all([h?.close(), kdc?.stop()])
  })

  test('no ticket is asked for before a domain has a server of Kerberos', async () => {
    const answer = await h.call('POST', '/session', { body: {} })
    expect([answer.status, answer.headers['www-authenticate']]).toEqual([400, undefined])
  })

  test('a ticket signs its person in, and the bastion proves itself', async () => {
    await must('POST', '/externalauths', {
      authentication_name: 'realm',
      type: 'KERBEROS',
      host: '127.0.0.1',
      kerberos: { realm: REALM, service_principal: 'HTTP/127.0.0.1' },
      keytab: await kdc.keytab('HTTP/127.0.0.1'),
    })
    await must('POST', '/authdomains', { domain_name: 'LAB', type: 'KERBEROS', external_auths: ['realm'] })
    await must('POST', '/authdomains/LAB/mappings', {
      user_group: 'staff',
      external_group: '*',
      profile: 'auditor',
    })
    const asked = await h.call('POST', '/session', { body: {} })
    expect([asked.status, asked.headers['www-authenticate']]).toEqual([401, 'Negotiate'])
    await kdc.ticketOf('alice', 'Person-Pass1')
    const { status, headers, body } = await curl()
    expect(body).toContain('"alice@LAB"')
    expect(status).toBe(200)
    expect(headers).toMatch(/www-authenticate: negotiate [a-z0-9+/=]{50,}/)
    const [, session] = /set-cookie: (sallyport_session=[^;]+)/.exec(headers) ?? []
    expect(session).toBeDefined()
    expect(await h.events('auth.success')).toContainEqual(
      expect.objectContaining({ user: 'alice@LAB', method: 'negotiate', profile: 'auditor' }),
    )
  })

  test('a ticket signs its person in on the page, and a browser without one gets the page back', async () => {
    const page = `${url}/signin/negotiate?return=/account`
    const { status, headers } = await asking([page])
    expect(status).toBe(303)
    expect(headers).toMatch(/\r\nlocation: \/account\r\n/)
    expect(headers).toMatch(/set-cookie: sallyport_session=[^;]+; path=\/; httponly; secure; samesite=lax/)
    const without = await h.api.inject({ method: 'GET', url: '/signin/negotiate' })
    expect([without.statusCode, without.headers['www-authenticate']]).toEqual([401, 'Negotiate'])
    expect(without.body).toContain('The browser has shown no ticket.')
    expect((await h.api.inject({ method: 'GET', url: '/signin' })).body).toContain('href="/signin/negotiate"')
  })

  test('where a second factor is required, the ticket alone signs no one in', async () => {
    const require = (second_factor: string) =>
      h.call('PUT', '/profiles/auditor', { cookie, body: { second_factor } })
    expect((await require('required')).status).toBe(200)
    const { status, headers, body } = await curl()
    expect([status, JSON.parse(body).error]).toEqual([401, 'second_factor_required'])
    expect(headers).not.toMatch(/set-cookie|www-authenticate/)
    expect((await require('none')).status).toBe(200)
  })

  const negotiate = (token: Uint8Array) =>
    h.call('POST', '/session', {
      body: {},
      headers: { authorization: `Negotiate ${Buffer.from(token).toString('base64')}` },
    })

  test('all that is refused looks like a wrong password, and the audit log says why', async () => {
    const unknown = await h.call('POST', '/session', { body: { user: 'nobody', password: 'x' } })
    const before = (await h.events('auth.failure')).length
    const { items } = await h.store.authDomainMappings.list()
    for (const { id } of items) await h.store.authDomainMappings.remove(id)
    await kdc.ticketOf('carol', 'Person-Pass1')
    const unmapped = await curl()
    const foreign = await negotiate(spnego({ realm: 'EVIL' }))
    const forged = await negotiate(spnego({ realm: REALM, service: ['HTTP', '127.0.0.1'], version: 2 }))
    const garbage = await negotiate(Buffer.from('garbage'))
    for (const { status, headers, text } of [foreign, forged, garbage]) {
      expect([status, headers['set-cookie'], headers['www-authenticate']]).toEqual([
        401,
        undefined,
        undefined,
      ])
      expect(text).toBe(unknown.text)
    }
    expect([unmapped.status, unmapped.body]).toEqual([401, unknown.text])
    expect(unmapped.headers).not.toMatch(/set-cookie|www-authenticate/)
    const found = (await h.events('auth.failure')).slice(before)
    expect(found.map(({ user, reason }) => [user, reason])).toEqual([
      ['carol@LAB', 'unmapped'],
      [undefined, 'no domain has a server of the realm EVIL'],
      [undefined, expect.stringMatching(/another key/)],
      [undefined, expect.stringContaining('was expected')],
    ])
    expect(found.map(({ method }) => method)).toEqual(Array(4).fill('negotiate'))
  })

  test('a keytab that cannot be read is no failure of the client, and says nothing of the vault to it', async () => {
    const auth = (await h.store.externalAuths.find('realm'))!
    const sealed = (await h.store.externalAuths.sealedSecrets(auth.id)).get('keytab')!
    const altered = Uint8Array.from(sealed)
    altered[altered.length - 1]! ^= 1
    const count = async () => [
      (await h.events('auth.failure')).length,
      (await h.events('auth.unavailable')).length,
    ]
    const [failures, unavailable] = await count()
    const shown = () => negotiate(spnego({ realm: REALM, service: ['HTTP', '127.0.0.1'], version: 2 }))
    const reasons = []
    for (const keytab of [altered, undefined]) {
      await h.store.externalAuths.setSealedSecrets(auth.id, new Map([['keytab', keytab]]))
      // More than may fail from one address with one name.
      for (let i = 0; i <= LOCKOUT_LIMITS.pairFailures; i++) {
        const { status, body, headers } = await shown()
        expect([status, body.error, headers['set-cookie']]).toEqual([503, 'sign_in_unavailable', undefined])
        expect(JSON.stringify(body)).not.toMatch(/keytab|seal/i)
      }
      reasons.push((await h.events('auth.unavailable')).at(-1))
    }
    expect(reasons).toEqual([
      expect.objectContaining({
        method: 'negotiate',
        object: 'realm',
        reason: expect.stringMatching(/sealed/),
      }),
      expect.objectContaining({
        method: 'negotiate',
        reason: expect.stringContaining('expected a `keytab`'),
      }),
    ])
    expect((await count())[0]).toBe(failures)
    expect((await count())[1]).toBeGreaterThan(unavailable!)
    await h.store.externalAuths.setSealedSecrets(auth.id, new Map([['keytab', sealed]]))
    const forged = await shown()
    expect([forged.status, forged.body.error]).toEqual([401, 'invalid_credentials'])
  })

  test('a header beside a password decides nothing', async () => {
    const headers = { authorization: `Negotiate ${spnego({}).toString('base64')}` }
    const own = await h.call('POST', '/session', { body: ADMIN, headers })
    expect([own.status, own.body.user]).toEqual([200, 'admin'])
    const foreign = { ...headers, 'sec-fetch-site': 'cross-site' }
    expect((await h.call('POST', '/session', { body: {}, headers: foreign })).body.error).toBe('cross_site')
    const basic = await h.call('POST', '/session', { body: {}, headers: { authorization: 'Basic YTpi' } })
    expect(basic.status).toBe(401)
  })

  test('a realm that leads to two domains leads to none', async () => {
    await must('POST', '/authdomains', { domain_name: 'LAB2', type: 'KERBEROS', external_auths: ['realm'] })
    const { status } = await curl()
    expect(status).toBe(401)
    expect((await h.events('auth.failure')).at(-1)?.reason).toBe(
      `2 servers of domains have the realm ${REALM}: one is expected`,
    )
  })
})
