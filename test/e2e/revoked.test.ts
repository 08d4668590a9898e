/** A revoked right ends at once, also in running sessions (real ssh on both sides). */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { callApi } from '../peers/broker.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import type { Terminal } from '../peers/terminal.ts'
import { until } from '../until.ts'
import { type Bastion, startBastion } from './bastion.ts'

let bastion: Bastion
const GROUP = 'ops1-srv1-users'
const PAIR = 'ops1-srv1-users:ops1-srv1-targets'

beforeAll(async () => {
  bastion = await startBastion()
})
afterAll(() => bastion.stop())

const must = (method: string, path: string, body?: unknown) => bastion.broker.must(method, path, body)

async function shell(user = 'ops1'): Promise<Terminal> {
  const login = bastion.login({
    user: bastion.login().user.replace('ops1', user),
    password: `${user} password`,
  })
  const terminal = sshTerminal(bastion.home, login)
  await terminal.expect('$ ')
  return terminal
}

/** Adds another user to the same group. */
async function addUser(user: string): Promise<void> {
  await must('POST', '/users', {
    user_name: user,
    password: `${user} password`,
    user_auths: ['local_password'],
    groups: [GROUP],
  })
}

/** Expects the terminal to end soon, with the reason on it. */
async function expectEnd(terminal: Terminal, reason: string): Promise<void> {
  const code = await terminal.exit()
  expect(terminal.output()).toContain(reason)
  expect(code).not.toBe(0)
}

test.each([
  ['disabled', 'PUT', { is_disabled: true }, 'the user is disabled'],
  ['locked', 'PUT', { is_locked: true }, 'the user is locked'],
  ['expired', 'PUT', { expiration_date: '2020-01-01T00:00:00Z' }, 'the user has expired'],
  ['bound to another address', 'PUT', { ip_source: ['192.0.2.0/24'] }, 'may not come from this address'],
  ['out of the group', 'PUT', { groups: [] }, 'the authorization for this target is gone'],
  ['removed', 'DELETE', undefined, 'the user was removed'],
])('a user who is %s: the session ends, nobody else’s does', async (what, method, body, reason) => {
  const user = `u-${what.replaceAll(' ', '-')}`
  await addUser(user)
  const [gone, other] = await Promise.all([shell(user), shell()])
  const begin = Date.now()
  await must(method, `/users/${user}`, body)
  await expectEnd(gone, reason)
  expect(Date.now() - begin).toBeLessThan(4000)
  other.send('exit 7\r')
  expect(await other.exit()).toBe(7)
  const event = (await bastion.events('session.kill', 1)).at(-1)
  expect(event).toMatchObject({ device: 'srv1', reason: expect.stringContaining(reason) })
  expect(event).not.toHaveProperty('client_ip')
  const row = await until('the session’s row', async () =>
    (await bastion.closedSessions()).find((one) => one.user === user),
  )
  expect(row).toMatchObject({ result: 'killed', recording: { state: 'sealed' } })
  expect((await ssh(bastion.home, { ...bastion.login(), user: `${user}+x@srv1` }, ['id'])).code).toBe(255)
})

test('a user whose time is over in the middle of a session', async () => {
  await addUser('brief')
  const terminal = await shell('brief')
  await must('PUT', '/users/brief', { expiration_date: new Date(Date.now() + 1500).toISOString() })
  await expectEnd(terminal, 'the user has expired')
})

test('a session whose timeframe is about to end, and then is over', async () => {
  const clock = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString().slice(11, 16)
  const until3 = { periods: [{ start_time: clock(-60), end_time: clock(3) }] }
  await must('POST', '/timeframes', { timeframe_name: 'now', periods: [{}] })
  await must('PUT', `/usergroups/${GROUP}`, { timeframes: ['now'] })
  const terminal = await shell()
  await must('PUT', '/timeframes/now', until3)
  await terminal.expect('its timeframe is over then')
  await must('PUT', '/timeframes/now', { periods: [{ start_time: clock(-60), end_time: clock(-10) }] })
  await expectEnd(terminal, 'the timeframe of the authorization is over')
  expect((await ssh(bastion.home, bastion.login(), ['id'])).code).toBe(255)
  await must('PUT', `/usergroups/${GROUP}`, { timeframes: [] })
  await must('DELETE', '/timeframes/now')
})

test('rights that another process takes away: of a user, and of a group', async () => {
  await addUser('one')
  await addUser('two')
  const [one, two, other] = await Promise.all([shell('one'), shell('two'), shell()])
  const store = await openStore({ path: join(bastion.broker.dataFolder, 'sallyport.db') })
  try {
    const { users, userGroups } = store
    await users.update((await users.find('one'))!.id, { isDisabled: true })
    await expectEnd(one, 'the user is disabled')
    const group = (await userGroups.find(GROUP))!
    const second = (await users.find('two'))!.id
    await userGroups.update(group.id, { userIds: group.userIds.filter((id) => id !== second) })
    await expectEnd(two, 'the authorization for this target is gone')
  } finally {
    await store.close()
  }
  other.send('exit 7\r')
  expect(await other.exit()).toBe(7)
})

test('an authorization that grants less, or is gone', async () => {
  const [less, more] = [await shell(), await shell()]
  await must('PUT', `/authorizations/${PAIR}`, { description: 'nothing that matters' })
  less.send('echo still-$((40 + 2))\r')
  await less.expect('still-42')
  await must('PUT', `/authorizations/${PAIR}`, { subprotocols: ['SFTP_SESSION'] })
  await Promise.all([less, more].map((one) => expectEnd(one, 'a right of this session was taken away')))
  await must('PUT', `/authorizations/${PAIR}`, { subprotocols: ['SSH_SHELL'] })
  const gone = await shell()
  await must('DELETE', `/authorizations/${PAIR}`)
  await expectEnd(gone, 'the authorization for this target is gone')
  await must('POST', '/authorizations', {
    user_group: GROUP,
    target_group: 'ops1-srv1-targets',
    authorize_sessions: true,
    is_recorded: false,
  })
})

test('a target that is taken out of its group, or is to be recorded from now on', async () => {
  const unrecorded = await shell()
  await must('PUT', `/authorizations/${PAIR}`, { is_recorded: true })
  await expectEnd(unrecorded, 'are recorded from now on')
  const terminal = await shell()
  const target = `${bastion.account.name}@local:srv1:ssh`
  await must('PUT', '/targetgroups/ops1-srv1-targets', { session: { accounts: [] } })
  await expectEnd(terminal, 'the authorization for this target is gone')
  await must('PUT', '/targetgroups/ops1-srv1-targets', { session: { accounts: [target] } })
})

test('an account that its policy locks: by session, and by checkout', async () => {
  await must('POST', '/checkoutpolicies', { policy_name: 'single', enable_lock: true })
  await must('PUT', `/accounts/${bastion.account.name}@local`, { checkout_policy: 'single' })
  await must('PUT', `/authorizations/${PAIR}`, { authorize_password_retrieval: true })
  await addUser('second')
  const key = await bastion.broker.must<{ api_key: string }>('POST', '/apikeys', {
    key_name: 'k',
    profile: 'user',
  })
  const checkout = (user: string) =>
    callApi(
      bastion.broker.ports.https,
      readFileSync(join(bastion.broker.dataFolder, 'tls', 'cert.pem')),
      'POST',
      `/accounts/${bastion.account.name}@local/checkout`,
      undefined,
      { 'x-auth-key': key.api_key, 'x-auth-user': user },
    )
  const first = await shell()
  const login = bastion.login({
    user: bastion.login().user.replace('ops1', 'second'),
    password: 'second password',
  })
  const refused = await ssh(bastion.home, login, [])
  expect(refused.stderr).toContain('its checkout policy locks it')
  expect((await checkout('second')).status).toBe(409)
  // the same user may check it out twice
  expect((await checkout('ops1')).status).toBe(200)
  first.send('exit 0\r')
  await first.exit()
  const stillOut = await ssh(bastion.home, login, [])
  expect(stillOut.stderr).toContain('its checkout policy locks it')
})
