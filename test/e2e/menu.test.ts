/** Signing in without a target: the menu in a terminal, an error text otherwise. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sftp, ssh, sshTerminal } from '../peers/openssh.ts'
import { type Bastion, startBastion } from './bastion.ts'

let bastion: Bastion

beforeAll(async () => {
  bastion = await startBastion()
  const { must } = bastion.broker
  // More targets than a page shows; none of them answers.
  await must('POST', '/devices', { device_name: 'rack', host: '127.0.0.1', description: 'the other rack' })
  const accounts: string[] = []
  for (let n = 0; n < 30; n++) {
    await must('POST', '/devices/rack/services', { service_name: `ssh${n}`, protocol: 'SSH', port: 1 })
    accounts.push(`nobody@local:rack:ssh${n}`)
  }
  await must('POST', '/accounts', {
    account_name: 'nobody',
    device: 'rack',
    domain: 'local',
    credentials: [{ type: 'password', password: 'unused' }],
  })
  await must('POST', '/targetgroups', { group_name: 'rack', session: { accounts } })
  await must('POST', '/authorizations', {
    user_group: 'ops1-srv1-users',
    target_group: 'rack',
    authorize_sessions: true,
    subprotocols: ['SSH_SHELL'],
  })
})
afterAll(() => bastion.stop())

const alone = () => bastion.login({ user: 'ops1' })
const PROMPT = 'q to leave: '

test('search, choose, work, and the exit code comes back', async () => {
  const terminal = sshTerminal(bastion.home, alone(), [], { columns: 100, lines: 30 })
  expect(await terminal.expect(PROMPT)).toMatch(/Your targets \(1-\d+ of 31\)/)
  terminal.send('srv1\r')
  expect(await terminal.expect(PROMPT)).toMatch(/1 of 1 found, 31 in all[\s\S]*srv1:ssh/)
  terminal.resize(111, 33)
  terminal.send('1\r')
  await terminal.expect('$ ')
  terminal.send('stty size; echo T=$TERM; exit 3\r')
  expect(await terminal.expect(/T=xterm\S+/)).toContain('33 111')
  expect(await terminal.exit()).toBe(3)
})

test('pages, wrong numbers, editing, and words that match nothing', async () => {
  const terminal = sshTerminal(bastion.home, alone(), [], { columns: 100, lines: 20 })
  await terminal.expect(PROMPT)
  terminal.send('\r')
  expect(await terminal.expect(PROMPT)).toMatch(/Your targets \(15-28 of 31\)/)
  terminal.send('99\r')
  expect(await terminal.expect(PROMPT)).toContain('no number 99')
  terminal.send('nosuchx\x7fthing\r')
  expect(await terminal.expect(PROMPT)).toContain('Nothing matches "nosuchthing"')
  terminal.send('the other rack ssh29\r')
  expect(await terminal.expect(PROMPT)).toContain('nobody@local:rack:ssh29')
  terminal.send('q\r')
  expect(await terminal.exit()).toBe(0)
})

test('a target that does not answer: the reason, and the menu again', async () => {
  const terminal = sshTerminal(bastion.home, alone())
  await terminal.expect(PROMPT)
  terminal.send('ssh29\r')
  await terminal.expect(PROMPT)
  terminal.send('1\r')
  expect(await terminal.expect(PROMPT)).toContain('connection refused')
  terminal.send('srv1\r')
  await terminal.expect(PROMPT)
  terminal.send('1\r')
  await terminal.expect('$ ')
  terminal.send('exit\r')
  expect(await terminal.exit()).toBe(0)
})

test('a timeframe that ends takes its targets out of the menu, and says so', async () => {
  const { must } = bastion.broker
  const name = { timeframe_name: 'night' }
  await must('POST', '/timeframes', { ...name, periods: [{ start_time: '00:00', end_time: '24:00' }] })
  await must('POST', '/usergroups', { group_name: 'night', users: ['ops1'], timeframes: ['night'] })
  await must('POST', '/devices', { device_name: 'moon', host: '127.0.0.1' })
  await must('POST', '/devices/moon/services', { service_name: 'ssh', protocol: 'SSH', port: 1 })
  const credentials = [{ type: 'password', password: 'unused' }]
  await must('POST', '/accounts', { account_name: 'nobody', device: 'moon', domain: 'local', credentials })
  await must('POST', '/targetgroups', {
    group_name: 'night',
    session: { accounts: ['nobody@local:moon:ssh'] },
  })
  const pair = { user_group: 'night', target_group: 'night' }
  await must('POST', '/authorizations', { ...pair, authorize_sessions: true, subprotocols: ['SSH_SHELL'] })
  const terminal = sshTerminal(bastion.home, alone(), [], { columns: 100, lines: 30 })
  expect(await terminal.expect(PROMPT)).toContain('of 32)')
  terminal.send('moon\r')
  expect(await terminal.expect(PROMPT)).toContain('moon:ssh')
  const over = { start_date: '2026-01-01', end_date: '2026-01-01' }
  await must('PUT', '/timeframes/night', { periods: [over] })
  const anew = await terminal.expect(PROMPT)
  expect(anew).toContain('sallyport: your targets have changed: a timeframe or a right has ended')
  expect(anew).toContain('of 31)')
  terminal.send('moon\r')
  expect(await terminal.expect(PROMPT)).toContain('Nothing matches')
  terminal.send('q\r')
  expect(await terminal.exit()).toBe(0)
})

test.each([
  ['Ctrl-C', '\x03'],
  ['Ctrl-D', '\x04'],
])('%s leaves', async (_, key) => {
  const terminal = sshTerminal(bastion.home, alone())
  await terminal.expect(PROMPT)
  terminal.send(key)
  expect(await terminal.exit()).toBe(0)
})

test('without a terminal: the syntax, and 255', async () => {
  const command = await ssh(bastion.home, alone(), ['id'])
  expect(command).toMatchObject({ code: 255, stdout: '' })
  expect(command.stderr).toContain('USER+ACCOUNT@DEVICE')
  const files = await sftp(bastion.home, alone(), ['ls'])
  expect(files.code).not.toBe(0)
  expect(files.stderr).toContain('USER+ACCOUNT@DEVICE')
})

test('a target that does not exist and one that is not allowed get the same answer', async () => {
  await bastion.broker.must('POST', '/devices', { device_name: 'secret', host: '127.0.0.1' })
  const ask = (device: string) => ssh(bastion.home, bastion.login({ user: `ops1+root@${device}` }), ['id'])
  const hidden = await ask('secret')
  const unknown = await ask('nowhere')
  expect(hidden.code).toBe(255)
  expect(hidden.stderr.replaceAll('secret', 'nowhere')).toBe(unknown.stderr)
})

test('several that may be meant are named', async () => {
  const { code, stderr } = await ssh(bastion.home, bastion.login({ user: 'ops1+nobody@rack' }), ['id'])
  expect(code).toBe(255)
  expect(stderr).toContain('nobody@local:rack:ssh0')
})
