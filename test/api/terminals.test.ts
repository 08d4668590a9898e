/** Services, policies and credentials of targets that have only a terminal. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LOGIN_OPTIONS } from '../../src/model/login-options.ts'
import { type Answer, type Harness, startHarness } from './harness.ts'

let h: Harness
let cookie: string
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
  await must('POST', '/devices', { device_name: 'sw1', host: '192.0.2.9' })
})
afterAll(() => h.close())

const call = (method: string, path: string, body?: unknown): Promise<Answer> =>
  h.call(method, path, { cookie, ...(body === undefined ? {} : { body }) })
const must = async (method: string, path: string, body?: unknown) => {
  const answer = await call(method, path, body)
  expect(answer.status, `${method} ${path}: ${answer.text}`).toBeLessThan(300)
  return answer.body
}
const refused = async (method: string, path: string, body: unknown) => {
  const { status, body: answer } = await call(method, path, body)
  expect(status).toBe(400)
  return Object.fromEntries(
    answer.details.map(({ field, message }: { field: string; message: string }) => [field, message]),
  )
}

describe('services', () => {
  it.each([
    ['TELNET', 23],
    ['RLOGIN', 513],
  ])('of %s have its port and its policy', async (protocol, port) => {
    const body = { service_name: protocol.toLowerCase(), protocol }
    expect(await must('POST', '/devices/sw1/services', body)).toMatchObject({
      port,
      connection_policy: protocol,
      host_key_policy: null,
    })
  })

  it('have no host keys', async () => {
    const body = { service_name: 'other', protocol: 'TELNET', host_key_policy: 'pinned' }
    expect(await refused('POST', '/devices/sw1/services', body)).toEqual({
      host_key_policy: 'TELNET has no host keys',
    })
  })

  it('take policies of their protocol only', async () => {
    const body = { service_name: 'other', protocol: 'TELNET', connection_policy: 'RLOGIN' }
    expect(Object.keys(await refused('POST', '/devices/sw1/services', body))).toEqual(['connection_policy'])
  })
})

describe('connection policies', () => {
  it('say how to log in, from good defaults', async () => {
    const made = await must('POST', '/connectionpolicies', {
      policy_name: 'switches',
      protocol: 'TELNET',
      login_prompt: '(?i)operator:\\s*$',
      enable_command: 'super',
      login_timeout: 60,
      idle_timeout: 600,
    })
    expect(made).toMatchObject({
      login_prompt: '(?i)operator:\\s*$',
      password_prompt: LOGIN_OPTIONS.passwordPrompt,
      enable_command: 'super',
      login_timeout: 60,
      idle_timeout: 600,
    })
    const changed = await must('PUT', '/connectionpolicies/switches', { login_timeout: 10 })
    expect(changed).toMatchObject({ login_timeout: 10, enable_command: 'super' })
  })

  it.each([
    ['TELNET', { forward_to: ['*:*'], host_key_policy: 'pinned', client_user: 'x', login_timeout: 9 }],
    ['SSH', { login_prompt: 'x', privileged_port: false }],
  ])('for %s refuse what means nothing there', async (protocol, fields) => {
    const answer = await refused('POST', '/connectionpolicies', { policy_name: 'x', protocol, ...fields })
    const meant = protocol === 'TELNET' ? ['login_timeout'] : []
    expect(Object.keys(answer)).toEqual(Object.keys(fields).filter((field) => !meant.includes(field)))
    expect(new Set(Object.values(answer))).toEqual(new Set([`it means nothing in a policy for ${protocol}`]))
  })

  it.each(['(', '(?=x)', '(a{1000}){9}', '\\1'])('refuse the expression %j', async (source) => {
    const body = { policy_name: 'x', protocol: 'RLOGIN', password_prompt: source }
    expect(Object.keys(await refused('POST', '/connectionpolicies', body))).toEqual(['password_prompt'])
  })

  it('take no command that is more than a line', async () => {
    const body = { policy_name: 'x', protocol: 'TELNET', enable_command: 'enable\rreload' }
    expect(Object.keys(await refused('POST', '/connectionpolicies', body))).toEqual(['enable_command'])
  })
})

describe('accounts', () => {
  const account = { account_name: 'admin', device: 'sw1' }
  it('have a second password, which never comes back', async () => {
    const credentials = [
      { type: 'password', password: 'one' },
      { type: 'enable', password: 'two' },
    ]
    const made = await call('POST', '/accounts', { ...account, credentials })
    expect(made.status).toBe(201)
    expect(made.body.credentials).toEqual([{ type: 'password' }, { type: 'enable' }])
    expect(made.text).not.toContain('two')
  })
})
