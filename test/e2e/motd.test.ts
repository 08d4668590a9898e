/** The message of the day: in the first terminal of a connection only. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fingerprintOf } from '../../src/identity/public-key.ts'
import { sftp, ssh, sshTerminal } from '../peers/openssh.ts'
import { plinkTerminal } from '../peers/putty.ts'
import { pythonClient } from '../peers/python.ts'
import { type Bastion, startBastion } from './bastion.ts'
import { framesOf, streamOf } from './recorded.ts'

const MOTD = 'Die Wartung beginnt am Sonntag.\nNo work on prod today.\n'
const SHOWN = MOTD.replaceAll('\n', '\r\n')

let bastion: Bastion
beforeAll(async () => {
  bastion = await startBastion({ broker: { config: { ssh: { motd: MOTD } } } })
})
afterAll(() => bastion.stop())

const times = (text: string) => text.split('No work on prod today.').length - 1

test('is the first that a shell shows, and is not recorded', async () => {
  const before = (await bastion.closedSessions()).length
  const terminal = sshTerminal(bastion.home, bastion.login())
  await terminal.expect('$ ')
  terminal.send('echo ready; exit\r')
  expect(await terminal.exit()).toBe(0)
  expect(terminal.output().startsWith(SHOWN)).toBe(true)
  expect(times(terminal.output())).toBe(1)

  const session = (await bastion.closedSessions(before + 1)).at(-1)!
  const recorded = streamOf(await framesOf(bastion.broker, session.id), 'output').toString()
  expect(recorded).toContain('ready')
  expect(times(recorded)).toBe(0)
})

test('stands above the menu, and is not repeated by the target that is chosen there', async () => {
  const terminal = sshTerminal(bastion.home, bastion.login({ user: 'ops1' }))
  expect(await terminal.expect('q to leave: ')).toContain(`${SHOWN}Your targets`)
  terminal.send('1\r')
  await terminal.expect('$ ')
  terminal.send('exit\r')
  expect(await terminal.exit()).toBe(0)
  expect(times(terminal.output())).toBe(1)
})

test('is shown once for all sessions of a connection', async () => {
  const options = [`ControlPath=${join(bastion.home.folder, 'control')}`]
  const first = sshTerminal(bastion.home, bastion.login({ options: [...options, 'ControlMaster=yes'] }))
  await first.expect('$ ')
  const second = sshTerminal(bastion.home, bastion.login({ options }))
  await second.expect('$ ')
  for (const terminal of [second, first]) {
    terminal.send('exit\r')
    expect(await terminal.exit()).toBe(0)
  }
  expect([times(first.output()), times(second.output())]).toEqual([1, 0])
})

test('is shown by PuTTY and paramiko too', async () => {
  const hostFingerprint = fingerprint()
  const putty = await plinkTerminal(bastion.home, bastion.login({ hostFingerprint }))
  await putty.expect('$ ')
  putty.send('exit\r')
  await putty.exit()
  expect(times(putty.output())).toBe(1)
  const [shell] = await pythonClient('paramiko', bastion.home, bastion.login(), [{ shell: 'exit\n' }])
  expect(times(shell?.stdout ?? '')).toBe(1)
})

test('is not in the way of commands, transfers, and shells without a terminal', async () => {
  const plain = await ssh(bastion.home, bastion.login(), ['echo done'])
  expect(plain).toMatchObject({ code: 0, stdout: 'done\n', stderr: '' })
  const piped = await ssh(bastion.home, bastion.login(), [], { input: 'echo done\n', flags: ['-T'] })
  expect(times(piped.stdout + piped.stderr)).toBe(0)
  const onTerminal = sshTerminal(bastion.home, bastion.login(), ['echo done'])
  expect(await onTerminal.exit()).toBe(0)
  expect(times(onTerminal.output())).toBe(0)
  const files = await sftp(bastion.home, bastion.login(), ['pwd'])
  expect(files.code).toBe(0)
  expect(times(files.stdout + files.stderr)).toBe(0)
})

/** Returns the fingerprint of the key that the bastion shows first. */
function fingerprint(): string {
  const line = readFileSync(join(bastion.broker.dataFolder, 'ssh', 'ssh_host_ed25519_key.pub'), 'utf8')
  return fingerprintOf(Buffer.from(line.split(' ')[1]!, 'base64'))
}
