/** Services, policies and target groups of VNC. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { VNC_OPTIONS } from '../../src/model/vnc-options.ts'
import { type Answer, type Harness, startHarness } from './harness.ts'

let h: Harness
let cookie: string
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
  await must('POST', '/devices', { device_name: 'desk1', host: '192.0.2.9' })
})
afterAll(() => h.close())

const call = (method: string, path: string, body?: unknown): Promise<Answer> =>
  h.call(method, path, { cookie, ...(body === undefined ? {} : { body }) })
const must = async (method: string, path: string, body?: unknown) => {
  const answer = await call(method, path, body)
  expect(answer.status, `${method} ${path}: ${answer.text}`).toBeLessThan(300)
  return answer.body
}
const refused = async (method: string, path: string, body: unknown): Promise<string[]> => {
  const { status, body: answer } = await call(method, path, body)
  expect(status).toBe(400)
  return answer.details.map(({ field }: { field: string }) => field)
}

describe('services of VNC', () => {
  it('have its port, its policy, and rights for the clipboard', async () => {
    const body = { service_name: 'vnc', protocol: 'VNC', subprotocols: ['VNC', 'VNC_CLIPBOARD_DOWN'] }
    expect(await must('POST', '/devices/desk1/services', body)).toMatchObject({
      port: 5900,
      connection_policy: 'VNC',
      subprotocols: ['VNC', 'VNC_CLIPBOARD_DOWN'],
      host_key_policy: null,
    })
    expect(await must('PUT', '/devices/desk1/services/vnc', { host_key_policy: 'pinned' })).toMatchObject({
      host_key_policy: 'pinned',
    })
  })

  it('are believed by what is pinned, and by nothing that is of SSH', async () => {
    const path = '/devices/desk1/services'
    for (const host_key_policy of ['ca', 'dns']) {
      const body = { service_name: 'other', protocol: 'VNC', host_key_policy }
      expect(await refused('POST', path, body)).toEqual(['host_key_policy'])
    }
    await must('POST', path, { service_name: 'turned', protocol: 'SSH', host_key_policy: 'ca' })
    const turned = { protocol: 'VNC', connection_policy: 'VNC' }
    expect(await refused('PUT', `${path}/turned`, turned)).toEqual(['host_key_policy'])
  })
})

describe('connection policies of VNC', () => {
  it('say what sessions are held to, from good defaults', async () => {
    const made = await must('POST', '/connectionpolicies', {
      policy_name: 'kiosks',
      protocol: 'VNC',
      view_only: true,
      security_types: ['vncauth', 'x509vnc', 'vncauth'],
      max_duration: 600,
    })
    expect(made).toMatchObject({
      view_only: true,
      mask_keys: true,
      session_notice: true,
      security_types: ['vncauth', 'x509vnc'],
      desktop_quota: VNC_OPTIONS.desktopQuota,
      max_duration: 600,
    })
    const changed = await must('PUT', '/connectionpolicies/kiosks', { mask_keys: false })
    expect(changed).toMatchObject({ view_only: true, mask_keys: false })
  })

  it('take no password in clear, and none at all, only when they are named', async () => {
    const { security_types: types } = await must('GET', '/connectionpolicies/VNC')
    expect(types).toContain('vncauth')
    for (const named of ['none', 'tlsnone', 'x509none', 'plain', 'mslogon2'])
      expect(types).not.toContain(named)
  })

  it.each([
    ['VNC', { host_key_policy: 'ca' }],
    ['VNC', { security_types: [] }],
    ['VNC', { security_types: ['telepathy'] }],
    ['VNC', { desktop_quota: 1 }],
    ['VNC', { terminal_quota: 1_000_000 }],
    ['VNC', { command_rules: ['kill x'] }],
    ['VNC', { forward_to: ['*:*'] }],
    ['SSH', { view_only: true }],
    ['TELNET', { mask_keys: false }],
  ])('for %s refuse %j', async (protocol, fields) => {
    const fieldsNamed = await refused('POST', '/connectionpolicies', {
      policy_name: 'x',
      protocol,
      ...fields,
    })
    expect(fieldsNamed.map((field) => field.split('/')[0])).toEqual(Object.keys(fields))
  })
})
