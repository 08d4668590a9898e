/** Services and policies of RDP. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RDP_OPTIONS } from '../../src/model/rdp-options.ts'
import { VNC_OPTIONS } from '../../src/model/vnc-options.ts'
import { type Answer, type Harness, startHarness } from './harness.ts'

let h: Harness
let cookie: string
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
  await must('POST', '/devices', { device_name: 'win1', host: '192.0.2.9' })
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

describe('services of RDP', () => {
  it('have its port, its policy, and a right for each thing that may pass', async () => {
    const subprotocols = ['RDP', 'RDP_CLIPBOARD_UP', 'RDP_DRIVE', 'RDP_AUDIO_OUTPUT']
    const body = { service_name: 'rdp', protocol: 'RDP', subprotocols }
    expect(await must('POST', '/devices/win1/services', body)).toMatchObject({
      port: 3389,
      connection_policy: 'RDP',
      subprotocols,
      host_key_policy: null,
    })
  })

  it('are believed by what is pinned, and by nothing that is of SSH', async () => {
    const path = '/devices/win1/services'
    const body = { service_name: 'other', protocol: 'RDP' }
    expect(await refused('POST', path, { ...body, host_key_policy: 'dns' })).toEqual(['host_key_policy'])
    expect(await must('POST', path, { ...body, host_key_policy: 'pinned' })).toMatchObject({
      host_key_policy: 'pinned',
    })
  })
})

describe('connection policies of RDP', () => {
  it('say what sessions are held to, from good defaults', async () => {
    const made = await must('POST', '/connectionpolicies', {
      policy_name: 'farm',
      protocol: 'RDP',
      view_only: true,
      security: ['tls', 'tls'],
      redirect_to: ['10.0.0.0/8'],
      max_duration: 600,
    })
    expect(made).toMatchObject({
      view_only: true,
      mask_keys: true,
      session_notice: true,
      desktop_quota: RDP_OPTIONS.desktopQuota,
      security: ['tls'],
      kerberos: true,
      ntlm: true,
      colour_depth: 32,
      redirect_to: ['10.0.0.0/8'],
      logon_wait: 30,
      dynamic_channels: [],
      max_duration: 600,
    })
    const change = { mask_keys: false, ntlm: false, colour_depth: 16, dynamic_channels: ['ECHO'] }
    const changed = await must('PUT', '/connectionpolicies/farm', change)
    expect(changed).toMatchObject({ ...change, view_only: true, security: ['tls'] })
    expect(await must('GET', '/connectionpolicies/farm')).toEqual(changed)
    const { vnc, rdp } = (await h.store.connectionPolicies.find('farm'))!
    expect(vnc).toEqual(VNC_OPTIONS)
    expect(rdp).toMatchObject({ viewOnly: true, maskKeys: false, colourDepth: 16 })
  })

  it.each([
    ['RDP', { host_key_policy: 'ca' }],
    ['RDP', { security: [] }],
    ['RDP', { security: ['rdp'] }],
    ['RDP', { colour_depth: 24 }],
    ['RDP', { logon_wait: 601 }],
    ['RDP', { redirect_to: ['farm.example.com'] }],
    ['RDP', { dynamic_channels: ['Microsoft::Windows::RDS::Graphics'] }],
    ['RDP', { dynamic_channels: ['audio_input'] }],
    ['RDP', { dynamic_channels: ['a b'] }],
    ['RDP', { security_types: ['vncauth'] }],
    ['VNC', { security: ['tls'] }],
    ['SSH', { view_only: true }],
    ['SSH', { ntlm: false }],
  ])('for %s refuse %j', async (protocol, fields) => {
    const named = await refused('POST', '/connectionpolicies', { policy_name: 'x', protocol, ...fields })
    expect(named.map((field) => field.split('/')[0])).toEqual(Object.keys(fields))
  })
})
