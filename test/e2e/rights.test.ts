/**
 * Each right alone allows its own operations and no others; a refusal is one clear line and the protocol's
 * failure.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rsync, scp, sftp, ssh, sshTerminal } from '../peers/openssh.ts'
import type { RunResult } from '../peers/process.ts'
import { until } from '../until.ts'
import { ALL_RIGHTS, type Bastion, startBastion } from './bastion.ts'

let bastion: Bastion
let authorization: string
let local: string

beforeAll(async () => {
  bastion = await startBastion()
  const [row] = await bastion.broker.must<{ id: string }[]>('GET', '/authorizations')
  authorization = row!.id
  local = join(bastion.home.folder, 'local.txt')
  writeFileSync(local, 'content')
})
afterAll(() => bastion.stop())

const remote = (name: string) => join(bastion.account.home, name)

interface Action {
  /** Each right alone is enough. */
  rights: string[]
  /** Runs it; returns true if it was done, and false if it was refused properly. Throws otherwise. */
  attempt: () => Promise<boolean>
}

/** Expects the error that names a missing right on standard error, and a failing exit code. */
function refused({ code, stderr }: Pick<RunResult, 'code' | 'stderr'>, ...rights: string[]): boolean {
  expect(stderr).toMatch(new RegExp(`the right (${rights.join('|')}) is missing`))
  expect(code).not.toBe(0)
  return false
}

/**
 * Without any right to files the channel is refused, else the request, of which OpenSSH's clients print no
 * reason.
 */
function refusedSftp(result: Pick<RunResult, 'code' | 'stderr'>, ...rights: string[]): boolean {
  expect(result.code).not.toBe(0)
  if (/ermission denied/.test(result.stderr)) return false
  return refused(result, 'SFTP_SESSION', ...rights)
}

function listed({ code, stderr }: RunResult): boolean {
  return code === 0 && !/ermission denied/.test(stderr)
}

const ACTIONS: Record<string, Action> = {
  shell: {
    rights: ['SSH_SHELL'],
    attempt: async () => {
      const terminal = sshTerminal(bastion.home, bastion.login())
      terminal.send('exit 0\r')
      const code = await terminal.exit()
      if (code === 0) return true
      expect(code).toBe(255)
      return refused({ code, stderr: terminal.output() }, 'SSH_SHELL')
    },
  },
  command: {
    rights: ['SSH_REMOTE_COMMAND'],
    attempt: async () => {
      const result = await ssh(bastion.home, bastion.login(), ['echo done'])
      if (result.stdout === 'done\n' && result.code === 0) return true
      expect(result).toMatchObject({ code: 255, stdout: '' })
      return refused(result, 'SSH_REMOTE_COMMAND')
    },
  },
  rsync: {
    rights: ['SSH_REMOTE_COMMAND'],
    attempt: async () => {
      const result = await rsync(bastion.home, bastion.login(), local, { remote: remote('rsync.txt') })
      return result.code === 0 ? true : refused(result, 'SSH_REMOTE_COMMAND')
    },
  },
  'sftp ls': {
    rights: ['SFTP_SESSION', 'SSH_SCP_DOWN'],
    attempt: async () => {
      const result = await sftp(bastion.home, bastion.login(), [`ls ${bastion.account.home}`])
      return listed(result) ? true : refusedSftp(result, 'SSH_SCP_DOWN')
    },
  },
  'sftp rm': {
    rights: ['SFTP_SESSION'],
    attempt: async () => {
      writeFileSync(remote('old.txt'), 'old')
      const result = await sftp(bastion.home, bastion.login(), [`rm ${remote('old.txt')}`])
      expect(existsSync(remote('old.txt'))).toBe(result.code !== 0)
      return result.code === 0 ? true : refusedSftp(result)
    },
  },
  'scp over SFTP, up': {
    rights: ['SFTP_SESSION', 'SSH_SCP_UP'],
    attempt: async () => {
      const result = await scp(bastion.home, bastion.login(), local, { remote: remote('scp.txt') })
      return result.code === 0 ? true : refusedSftp(result, 'SSH_SCP_UP')
    },
  },
  'scp over SFTP, down': {
    rights: ['SFTP_SESSION', 'SSH_SCP_DOWN'],
    attempt: async () => {
      writeFileSync(remote('down.txt'), 'from there')
      const back = join(bastion.home.folder, `scp-${Math.random()}.txt`)
      const result = await scp(bastion.home, bastion.login(), { remote: remote('down.txt') }, back)
      return result.code === 0 ? true : refusedSftp(result, 'SSH_SCP_DOWN')
    },
  },
  'scp -O up': {
    rights: ['SSH_SCP_UP'],
    attempt: async () => {
      const name = remote(`up-${Math.random()}.txt`)
      const result = await scp(bastion.home, bastion.login(), local, { remote: name }, ['-O'])
      expect(existsSync(name)).toBe(result.code === 0)
      return result.code === 0 ? true : refused(result, 'SSH_SCP_UP')
    },
  },
  'scp -O down': {
    rights: ['SSH_SCP_DOWN'],
    attempt: async () => {
      writeFileSync(remote('down.txt'), 'from there')
      const back = join(bastion.home.folder, `down-${Math.random()}.txt`)
      const result = await scp(bastion.home, bastion.login(), { remote: remote('down.txt') }, back, ['-O'])
      if (result.code !== 0) return refused(result, 'SSH_SCP_DOWN')
      expect(readFileSync(back, 'utf8')).toBe('from there')
      return true
    },
  },
}

describe.each(ALL_RIGHTS)('with %s alone', (granted) => {
  beforeAll(() => bastion.broker.must('PUT', `/authorizations/${authorization}`, { subprotocols: [granted] }))

  test.each(Object.entries(ACTIONS))('%s', async (_, { rights, attempt }) => {
    expect(await attempt()).toBe(rights.includes(granted))
  })
})

test('without any named right: the shell and no more', async () => {
  await bastion.broker.must('PUT', `/authorizations/${authorization}`, { subprotocols: [] })
  expect(await ACTIONS['shell']!.attempt()).toBe(true)
  expect(await ACTIONS['command']!.attempt()).toBe(false)
})

test('what the service lists cuts what the authorization grants', async () => {
  await bastion.broker.must('PUT', `/authorizations/${authorization}`, { subprotocols: ALL_RIGHTS })
  await bastion.broker.must('PUT', '/devices/srv1/services/ssh', { subprotocols: ['SFTP_SESSION'] })
  expect(await ACTIONS['sftp ls']!.attempt()).toBe(true)
  expect(await ACTIONS['command']!.attempt()).toBe(false)
  await bastion.broker.must('PUT', '/devices/srv1/services/ssh', { subprotocols: [] })
})

describe('with the SCP rights but not commands', () => {
  beforeAll(() =>
    bastion.broker.must('PUT', `/authorizations/${authorization}`, {
      subprotocols: ['SSH_SCP_UP', 'SSH_SCP_DOWN'],
    }),
  )

  test.each([
    ['a second command', 'scp -t /tmp/x; id'],
    ['a substitution', 'scp -f $(id)'],
    ['another program', 'scp -S /bin/sh -f /etc/hostname'],
    ['a shell around it', 'sh -c "scp -f /etc/hostname"'],
    ['a path to the program', '/usr/bin/scp -f /etc/hostname'],
    ['an SFTP server', '/usr/lib/openssh/sftp-server'],
  ])('%s is a command, and refused', async (_, command) => {
    const result = await ssh(bastion.home, bastion.login(), [command])
    expect(result).toMatchObject({ code: 255, stdout: '' })
    refused(result, 'SSH_REMOTE_COMMAND')
  })
})

test('SFTP within a command is cut at its first packet', async () => {
  await bastion.broker.must('PUT', `/authorizations/${authorization}`, {
    subprotocols: ['SSH_REMOTE_COMMAND'],
  })
  const input = '\0\0\0\x05\x01\0\0\0\x03'
  const result = await ssh(bastion.home, bastion.login(), ['/usr/lib/openssh/sftp-server'], { input })
  expect(result).toMatchObject({ code: 255, stdout: '' })
  refused(result, 'SFTP_SESSION')
  const reason = 'SFTP within a command: the right SFTP_SESSION is missing'
  await until('the event', async () =>
    (await bastion.events('channel.denied')).find((event) => event['reason'] === reason),
  )
})

test('a terminal makes no copy of what is not a command', async () => {
  await bastion.broker.must('PUT', `/authorizations/${authorization}`, { subprotocols: ['SSH_SCP_UP'] })
  const terminal = sshTerminal(bastion.home, bastion.login(), [`scp -t ${remote('pty.txt')}`])
  await terminal.expect('the right SSH_REMOTE_COMMAND is missing')
  expect(await terminal.exit()).toBe(255)
})

test('other subsystems are refused', async () => {
  await bastion.broker.must('PUT', `/authorizations/${authorization}`, { subprotocols: ALL_RIGHTS })
  const result = await ssh(bastion.home, bastion.login(), ['netconf'], { flags: ['-s'] })
  expect(result.code).toBe(255)
  expect(result.stderr).toContain('subsystem "netconf" is not allowed here')
})

test('refusals are events, and sessions end in order', async () => {
  const [denied] = (await bastion.events('channel.denied', 1)).slice(-1)
  expect(denied).toMatchObject({ user: 'ops1', device: 'srv1', client_ip: '127.0.0.1' })
  const sessions = await bastion.closedSessions(1)
  expect(sessions.filter(({ result }) => result !== 'success')).toEqual([])
})
