/** Findings about a body that does not fit: the invalid field, and its allowed values. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Harness, startHarness } from '../harness.ts'

let h: Harness
let cookie: string
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
})
afterAll(() => h.close())

async function findings(path: string, body: object, method = 'POST') {
  const answer = await h.call(method, path, { cookie, body })
  expect(answer.status).toBe(400)
  const details: { field?: string; message: string }[] = answer.body.details
  return { error: answer.body.error, details: details.map(({ field, message }) => [field, message]) }
}
const invalid = (...details: [string, string][]) => ({ error: 'invalid_field', details })
const unknown = (...fields: string[]) => ({
  error: 'unknown_field',
  details: fields.map((field) => [field, 'there is no such field here']),
})

describe('of a union, the findings are those of the branch that was meant', () => {
  const types = 'expected one of password, enable, ssh_key'
  const key = { type: 'ssh_key', private_key: 'k' }
  it.each([
    [[{ type: 'password', password: 'p', x: 1 }], unknown('credentials/0/x')],
    [[{ type: 'ssh_key', password: 'p' }], unknown('credentials/0/password')],
    [[{ type: 'token', password: 'p' }], invalid(['credentials/0/type', types])],
    [[{ password: 'p' }], invalid(['credentials/0/type', `this field is required: ${types}`])],
    [[{ type: ['password'], password: 'p' }], invalid(['credentials/0/type', types])],
    [[{ type: 'password' }], invalid(['credentials/0/password', 'this field is required'])],
    [[{ ...key, private_key: 5 }], invalid(['credentials/0/private_key', 'must be string'])],
    [[5], invalid(['credentials/0', 'must be object'])],
    [[null], invalid(['credentials/0', 'must be object'])],
    [[key, { type: 'x' }], invalid(['credentials/1/type', types])],
    [
      [
        { ...key, a: 1, b: 2, c: 3 },
        { type: 'password', password: 'p', d: 1, e: 2, f: 3 },
      ],
      unknown(
        ...[...'abc'].map((name) => `credentials/0/${name}`),
        ...[...'def'].map((name) => `credentials/1/${name}`),
      ),
    ],
  ])('%j', async (credentials, expected) => {
    expect(await findings('/accounts', { account_name: 'a', device: 'd', credentials })).toEqual(expected)
  })
})

describe('values that are told', () => {
  it('of a choice', async () => {
    expect(await findings('/hostkeys/x', { state: 'trusted' }, 'PUT')).toEqual(
      invalid(['state', 'expected accepted']),
    )
    const rights = { users: 'all', approvals: 'view' }
    expect(await findings('/profiles', { profile_name: 'p', rights })).toEqual(
      invalid(['rights/users', 'expected one of none, view, modify']),
    )
    const body = { user_group: 'a', target_group: 'b', subprotocols: ['SSH_SHELL', 'SSH'] }
    const { details } = await findings('/authorizations', body)
    expect(details).toEqual([
      [
        'subprotocols/1',
        expect.stringMatching(/^expected one of SSH_SHELL, .*SFTP_SESSION.*SSH_SHELL_SESSION$/),
      ],
    ])
  })

  it.each([
    ['/sessions?status=lost', 'status', 'expected one of current, closed'],
    ['/import/devices?dry_run=yes', 'dry_run', 'expected one of true, false'],
  ])('of a parameter: %s', async (path, field, message) => {
    const isImport = path.startsWith('/import')
    const sent = isImport ? { raw: '#device_name', headers: { 'content-type': 'text/csv' } } : {}
    const answer = await h.call(isImport ? 'POST' : 'GET', path, { cookie, ...sent })
    expect(answer.body).toMatchObject({ error: 'invalid_field', details: [{ field, message }] })
  })

  it('where null is one of them', async () => {
    await h.call('POST', '/devices', { cookie, body: { device_name: 'd', host: '192.0.2.1' } })
    const service = { service_name: 's', protocol: 'SSH', host_key_policy: 'never' }
    expect(await findings('/devices/d/services', service)).toEqual(
      invalid(['host_key_policy', 'expected one of first_sight, pinned, ca, dns, or null']),
    )
    const { details } = await findings('/users', { user_name: 'u', expiration_date: 'soon' })
    expect(details).toEqual([['expiration_date', 'must match format "date-time", or null']])
  })
})

it('many unknown fields are all told, up to a bound, and never none', async () => {
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`x${n}`, n]))
  expect(await findings('/usergroups', { group_name: 'g', ...many(12) })).toEqual(
    unknown(...Object.keys(many(12))),
  )
  expect(await findings('/usergroups', { group_name: 'g', 'a/b': 1 })).toEqual(unknown('a/b'))
  const { error, details } = await findings('/usergroups', { group_name: 'g', ...many(5000) })
  expect([error, details.length]).toEqual(['unknown_field', 20])
})
