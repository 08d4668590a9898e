/** Targets without a stored account: groups that contain them, and users that see them. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Answer, type Harness, startHarness } from './harness.ts'

let h: Harness
let admin: string
let ops: string

beforeAll(async () => {
  h = await startHarness()
  admin = await h.signIn()
  await h.addUser('ops1', 'user')
  await h.addUser('stranger', 'user')
  await post('/devices', { device_name: 'srv1', host: '192.0.2.1', description: 'web' })
  await post('/devices/srv1/services', { service_name: 'ssh', protocol: 'SSH' })
  await post('/devices/srv1/services', { service_name: 'ssh2', protocol: 'SSH', port: 2222 })
  await post('/accounts', { account_name: 'root', device: 'srv1' })
  await post('/usergroups', { group_name: 'ops', users: ['ops1'] })
  await post('/usergroups', { group_name: 'more', users: ['ops1'] })
  await post('/targetgroups', {
    group_name: 'logins',
    session: { interactive_logins: ['SRV1:ssh', 'srv1:ssh'], account_mappings: ['srv1:ssh2'] },
  })
  await post('/targetgroups', {
    group_name: 'mixed',
    session: { accounts: ['root@local:srv1:ssh2'], interactive_logins: ['srv1:ssh'] },
  })
  const rights = { target_group: 'logins', authorize_sessions: true }
  await post('/authorizations', { user_group: 'ops', ...rights, subprotocols: ['SSH_SHELL'] })
  await post('/authorizations', {
    user_group: 'more',
    target_group: 'mixed',
    authorize_sessions: true,
    subprotocols: ['SFTP_SESSION'],
  })
  ops = await h.signIn('ops1')
})
afterAll(() => h.close())

async function post(path: string, body: unknown): Promise<Answer> {
  const answer = await h.call('POST', path, { cookie: admin, body })
  expect(answer.status, answer.text).toBe(201)
  return answer
}
const get = (path: string, cookie = admin) => h.call('GET', path, { cookie })
const put = (path: string, body: unknown) => h.call('PUT', path, { cookie: admin, body })
const remove = (path: string) => h.call('DELETE', path, { cookie: admin })

describe('a target group', () => {
  it('holds services without an account, each once, and a change keeps what it does not name', async () => {
    const before = (await get('/targetgroups/logins')).body.session
    expect(before).toEqual({
      accounts: [],
      interactive_logins: ['srv1:ssh'],
      account_mappings: ['srv1:ssh2'],
    })
    const answer = await put('/targetgroups/logins', { session: { account_mappings: [] } })
    expect(answer.body.session).toEqual({ ...before, account_mappings: [] })
    await put('/targetgroups/logins', { session: { account_mappings: ['srv1:ssh2'] } })
    const events = await h.events('object.update')
    expect(events.at(-1)?.['changes']).toContain('account_mappings')
  })

  it.each([
    ['srv1', 'invalid_field'],
    ['root@local:srv1:ssh', 'invalid_field'],
    [':ssh', 'invalid_field'],
    ['srv9:ssh', 'unknown_reference'],
    ['srv1:telnet', 'unknown_reference'],
  ])('refuses %s', async (ref, error) => {
    for (const field of ['interactive_logins', 'account_mappings']) {
      const answer = await put('/targetgroups/logins', { session: { [field]: ['srv1:ssh', ref] } })
      expect(answer.status).toBe(400)
      expect(answer.body).toMatchObject({ error, details: [{ field: `session/${field}/1` }] })
    }
  })

  it('is found by them, and keeps their services and devices from being removed', async () => {
    const found = async (q: string) =>
      (await get(`/targetgroups?q=${encodeURIComponent(q)}`)).body.map(
        (one: { group_name: string }) => one.group_name,
      )
    expect(await found('session.interactive_logins=srv1:ssh')).toEqual(['logins', 'mixed'])
    expect(await found('session.account_mappings~srv1:*')).toEqual(['logins'])
    expect(await found('session.account_mappings=""')).toEqual(['mixed'])
    for (const path of ['/devices/srv1/services/ssh', '/devices/srv1']) {
      const answer = await remove(path)
      expect(answer.body).toMatchObject({ error: 'in_use' })
      expect(answer.text).toContain('logins')
    }
  })
})

describe('the targets of a user', () => {
  it('are named as a login string names them, with the rights of all authorizations', async () => {
    const { body } = await get('/targets', ops)
    expect(body).toEqual([
      expect.objectContaining({
        target: '@srv1:ssh',
        kind: 'interactive',
        account: '',
        domain: '',
        description: 'web',
        subprotocols: ['SSH_SHELL', 'SFTP_SESSION'],
      }),
      expect.objectContaining({ target: 'root@local:srv1:ssh2', kind: 'account' }),
      expect.objectContaining({
        target: 'ops1@srv1:ssh2',
        kind: 'mapping',
        account: 'ops1',
        domain: '',
        subprotocols: ['SSH_SHELL'],
      }),
    ])
  })

  it.each([
    ['@srv1:ssh', 2],
    ['ops1@*', 1],
    ['*:ssh', 1],
    ['srv1:ssh2', 2],
    ['srv*', 3],
    ['kind=interactive', 1],
    ['domain=""', 2],
  ])('are found by %s: %d', async (q, count) => {
    expect((await get(`/targets?q=${encodeURIComponent(q)}`, ops)).body).toHaveLength(count)
  })

  it('stand in the session rights, a row for each authorization', async () => {
    const { body } = await get('/sessionrights?user=ops1')
    const rows = body.map((one: Record<string, unknown>) => [
      one['target'],
      one['authorization'],
      one['subprotocols'],
    ])
    expect(rows).toEqual([
      ['@srv1:ssh', 'ops:logins', ['SSH_SHELL']],
      ['@srv1:ssh', 'more:mixed', ['SFTP_SESSION']],
      ['root@local:srv1:ssh2', 'more:mixed', ['SFTP_SESSION']],
      ['ops1@srv1:ssh2', 'ops:logins', ['SSH_SHELL']],
    ])
  })

  it('are none of a stranger', async () => {
    expect((await get('/targets', await h.signIn('stranger'))).body).toEqual([])
  })

  it('cannot be checked out', async () => {
    for (const ref of ['ops1@', '@srv1', 'ops1@srv1']) {
      const answer = await h.call('POST', `/accounts/${encodeURIComponent(ref)}/checkout`, { cookie: ops })
      expect(answer.status).toBe(404)
    }
  })
})
