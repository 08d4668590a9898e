/**
 * One lock-out for all fronts: attempts at the API count at the SSH front and the reverse, by name and
 * address.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LOCKOUT_LIMITS } from '../../src/identity/lockout.ts'
import { ssh } from '../peers/openssh.ts'
import { type Bastion, startBastion } from './bastion.ts'

const run = promisify(execFile)
const HERE = '127.0.0.1'
const ELSEWHERE = '127.0.0.2'
let bastion: Bastion

beforeAll(async () => {
  bastion = await startBastion()
  await bastion.broker.must('POST', '/users', {
    user_name: 'ops2',
    password: 'ops2 password',
    groups: ['ops1-srv1-users'],
  })
})
afterAll(() => bastion.stop())

/** Returns the status of a sign-in at the API from an address of the loopback network. */
async function atApi(user: string, password: string, from: string): Promise<number> {
  const { stdout } = await run('curl', [
    ...['-sS', '-o', '/dev/null', '-w', '%{http_code}', '--interface', from, '--insecure'],
    ...['-H', 'Content-Type: application/json', '-d', JSON.stringify({ user, password })],
    `https://127.0.0.1:${bastion.broker.ports.https}/api/session`,
  ])
  return Number(stdout)
}

async function atSsh(user: string, password: string, from: string): Promise<boolean> {
  const login = bastion.login({
    user: bastion.login().user.replace('ops1', user),
    password,
    method: 'password',
  })
  const options = [`BindAddress=${from}`, `UserKnownHostsFile=${join(bastion.home.folder, 'known')}`]
  const { stdout } = await ssh(bastion.home, { ...login, options }, ['echo in'])
  return stdout === 'in\n'
}

test('failures at the API lock the SSH front, for that address only', async () => {
  for (let n = 0; n < LOCKOUT_LIMITS.pairFailures; n++)
    expect(await atApi('ops1', 'wrong', ELSEWHERE)).toBe(401)
  expect(await bastion.events('auth.locked', 1)).toMatchObject([{ user: 'ops1', client_ip: ELSEWHERE }])
  expect(await atSsh('ops1', 'ops1 password', ELSEWHERE)).toBe(false)
  expect(await atApi('ops1', 'ops1 password', ELSEWHERE)).toBe(401)
  // a lock-out by name holds only for one place, and other names still work from there
  expect(await atSsh('ops1', 'ops1 password', HERE)).toBe(true)
  expect(await atSsh('ops2', 'ops2 password', ELSEWHERE)).toBe(true)
})

test('failures at the SSH front lock the API', async () => {
  for (let n = 0; n < LOCKOUT_LIMITS.pairFailures; n++) expect(await atSsh('ops2', 'wrong', HERE)).toBe(false)
  expect(await bastion.events('auth.locked', 2)).toMatchObject([{}, { user: 'ops2', client_ip: HERE }])
  expect(await atApi('ops2', 'ops2 password', HERE)).toBe(401)
  expect(await atApi('ops2', 'ops2 password', ELSEWHERE)).toBe(200)
})

test('failures of both doors are counted together', async () => {
  const third = '127.0.0.3'
  const half = LOCKOUT_LIMITS.pairFailures / 2
  for (let n = 0; n < half; n++) {
    expect(await atApi('admin', 'wrong', third)).toBe(401)
    expect(await atSsh('admin', 'wrong', third)).toBe(false)
  }
  expect((await bastion.events('auth.locked', 3)).at(-1)).toMatchObject({ user: 'admin', client_ip: third })
  // the administrator's own address still works
  expect(await bastion.broker.must('GET', '/users?limit=1')).toHaveLength(1)
})
