/** The realm of a domain, and the name of a service at its KDCs. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Answer, type Harness, startHarness } from './harness.ts'

let h: Harness
let cookie: string
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
  await must('POST', '/devices', { device_name: 'win1', host: 'win1.corp.example' })
})
afterAll(() => h.close())

const call = (method: string, path: string, body?: unknown, as = cookie): Promise<Answer> =>
  h.call(method, path, { cookie: as, ...(body === undefined ? {} : { body }) })
const must = async (method: string, path: string, body?: unknown) => {
  const answer = await call(method, path, body)
  expect(answer.status, `${method} ${path}: ${answer.text}`).toBeLessThan(300)
  return answer.body
}
const NONE = { realm: null, kdcs: [], timeout: 5 }
const CORP = {
  realm: 'CORP.EXAMPLE',
  kdcs: ['dc1.corp.example', '[2001:db8::1]:8888', '192.0.2.1:88'],
  timeout: 3,
}

it('is set, changed in parts, kept and removed', async () => {
  expect((await must('POST', '/domains', { domain_name: 'plain' })).kerberos).toEqual(NONE)
  expect((await must('POST', '/domains', { domain_name: 'corp', kerberos: CORP })).kerberos).toEqual(CORP)
  expect((await h.store.domains.find('corp'))?.kerberos).toEqual({
    realm: 'CORP.EXAMPLE',
    kdcs: [
      { host: 'dc1.corp.example' },
      { host: '2001:db8::1', port: 8888 },
      { host: '192.0.2.1', port: 88 },
    ],
    timeoutMs: 3000,
  })
  const changed = await must('PUT', '/domains/corp', { kerberos: { kdcs: ['dc2'] } })
  expect(changed.kerberos).toEqual({ ...CORP, kdcs: ['dc2'] })
  expect((await must('PUT', '/domains/corp', { description: 'x' })).kerberos.realm).toBe('CORP.EXAMPLE')
  expect((await must('PUT', '/domains/corp', { kerberos: { realm: null } })).kerberos).toEqual(NONE)
})

it.each([
  ['kerberos/realm', { realm: 'CORP EXAMPLE', kdcs: ['dc1'] }],
  ['kerberos/kdcs', { realm: 'CORP.EXAMPLE' }],
  ['kerberos/kdcs', { realm: 'CORP.EXAMPLE', kdcs: [] }],
  ['kerberos/kdcs', { kdcs: ['dc1'] }],
  ['kerberos/kdcs/0', { realm: 'CORP.EXAMPLE', kdcs: ['dc1:0'] }],
  ['kerberos/kdcs/1', { realm: 'CORP.EXAMPLE', kdcs: ['dc1', 'dc2/x'] }],
  ['kerberos/timeout', { realm: 'CORP.EXAMPLE', kdcs: ['dc1'], timeout: 60 }],
])('%s: %j is refused', async (field, kerberos) => {
  const { status, body } = await call('POST', '/domains', { domain_name: 'bad', kerberos })
  expect([status, body.details[0].field]).toEqual([400, field])
})

it('is of global domains only', async () => {
  const path = '/devices/win1/localdomains'
  const { status, body } = await call('POST', path, { domain_name: 'own', kerberos: CORP })
  expect([status, body.details[0].field]).toEqual([400, 'kerberos/realm'])
  expect((await must('POST', path, { domain_name: 'own', kerberos: NONE })).kerberos).toEqual(NONE)
})

it('a realm takes the rights of what its KDCs get', async () => {
  const full = { devices: 'modify', accounts: 'modify', authorizations: 'modify' }
  await must('POST', '/domains', { domain_name: 'guarded', kerberos: CORP })
  for (const missing of ['accounts', 'authorizations']) {
    await must('POST', '/profiles', { profile_name: `no-${missing}`, rights: { ...full, [missing]: 'view' } })
    await h.addUser(`no-${missing}`, 'user')
    await must('PUT', `/users/no-${missing}`, { profile: `no-${missing}` })
    const as = await h.signIn(`no-${missing}`)
    const kerberos = { ...CORP, kdcs: ['evil.example'] }
    expect((await call('PUT', '/domains/guarded', { kerberos }, as)).status).toBe(403)
    expect((await call('POST', '/domains', { domain_name: missing, kerberos }, as)).status).toBe(403)
    // A body that changes nothing there needs none of these rights.
    expect((await call('PUT', '/domains/guarded', { description: missing, kerberos: CORP }, as)).status).toBe(
      200,
    )
  }
})

it('the name of a service is a host, of RDP only', async () => {
  const path = '/devices/win1/services'
  const body = { service_name: 'rdp', protocol: 'RDP', kerberos_host: 'win1.corp.example' }
  expect(await must('POST', path, body)).toMatchObject({ kerberos_host: 'win1.corp.example' })
  expect(await must('PUT', `${path}/rdp`, { kerberos_host: null })).toMatchObject({ kerberos_host: null })
  for (const other of [{ kerberos_host: '192.0.2.9' }, { kerberos_host: 'a/b' }, { protocol: 'SSH' }])
    expect((await call('POST', path, { ...body, service_name: 'other', ...other })).status).toBe(400)
})
