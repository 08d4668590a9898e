/** ssh -J and ProxyJump: the error they get, the alternative, and their rights (real ssh on both sides). */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { writeHomeFile } from '../peers/home.ts'
import { type RunResult, run } from '../peers/process.ts'
import { findProgram } from '../peers/program.ts'
import { ALL_RIGHTS, type Bastion, startBastion } from './bastion.ts'

const PAIR = 'ops1-srv1-users:ops1-srv1-targets'

let bastion: Bastion

beforeAll(async () => {
  bastion = await startBastion({ subprotocols: [...ALL_RIGHTS, 'SSH_DIRECT_TCPIP'] })
})
afterAll(() => bastion.stop())

/** Runs OpenSSH's programs with a configuration file, from which -J also reads its options. */
async function openssh(
  program: 'ssh' | 'scp' | 'sftp',
  blocks: string,
  args: string[],
  input = '',
): Promise<RunResult> {
  const { home, key } = bastion
  const own = readFileSync(home.sshConfig, 'utf8').replace('LogLevel ERROR\n', '')
  const config = writeHomeFile(home, 'jump_config', `${blocks}\nHost *\nIdentityFile ${key.path}\n${own}`)
  return await run(findProgram(program), ['-F', config, ...args], { env: home.env(), input })
}
const at = (user: string) => `${user}@127.0.0.1:${bastion.broker.ports.ssh}`

test('-J without a target: told how to go there instead', async () => {
  const before = (await bastion.events('channel.denied')).length
  const { code, stderr } = await openssh('ssh', '', ['-J', at('ops1'), 'root@web1', 'id'])
  expect(code).toBe(255)
  expect(stderr).toContain(
    'leave that out and name the target in the user name, ssh ops1+ACCOUNT@web1@BASTION',
  )
  const [denied] = (await bastion.events('channel.denied', before + 1)).slice(before)
  expect(denied).toMatchObject({ user: 'ops1', subprotocol: 'channel direct-tcpip' })
  expect(await bastion.broker.must<unknown[]>('GET', '/sessions?status=current')).toEqual([])
})

test('a block of ssh_config: ssh, scp and sftp by the target’s own name', async () => {
  const block = [
    'Host srv1',
    'HostName 127.0.0.1',
    `Port ${bastion.broker.ports.ssh}`,
    `User ${bastion.login().user}`,
    'HostKeyAlias bastion.example.com',
  ].join('\n')
  expect(await openssh('ssh', block, ['srv1', 'echo by name; exit 3'])).toMatchObject({
    code: 3,
    stdout: 'by name\n',
  })
  const file = join(bastion.home.folder, 'named.txt')
  writeFileSync(file, 'named')
  const there = `${bastion.account.home}/named.txt`
  expect((await openssh('scp', block, [file, `srv1:${there}`])).code).toBe(0)
  expect(readFileSync(there, 'utf8')).toBe('named')
  const listed = await openssh('sftp', block, ['-b', '-', 'srv1'], `ls ${there}\n`)
  expect(listed.stdout).toContain('named.txt')
})

test('-J with a target: on from there, where the policy lets it', async () => {
  const { sshd, account, key, broker } = bastion
  const destination = `127.0.0.1:${sshd.port}`
  // the target's own sshd again, which accepts none of our keys: its prompt proves that the connection
  // arrived
  const jump = () =>
    openssh('ssh', '', ['-J', at(bastion.login().user), '-p', String(sshd.port), `${account.name}@127.0.0.1`])
  const arrived = await jump()
  expect(arrived.stderr).toContain('Permission denied')
  expect(sshd.log()).toContain(key.fingerprint)
  expect((await bastion.events('channel.open', 1)).at(-1)).toMatchObject({ destination })
  await broker.must('PUT', '/connectionpolicies/SSH', { forward_to: ['db1:22'] })
  expect((await jump()).stderr).toContain(`the connection policy forwards nothing to ${destination}`)
  await broker.must('PUT', `/authorizations/${PAIR}`, { subprotocols: ['SSH_SHELL'] })
  expect((await jump()).stderr).toContain('the right SSH_DIRECT_TCPIP is missing')
})
