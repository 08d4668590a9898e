/** Rules for files with a real target: its links, names and sizes, with real clients. */
import { createHash } from 'node:crypto'
import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { scp, sftp } from '../peers/openssh.ts'
import { run } from '../peers/process.ts'
import { pscp } from '../peers/putty.ts'
import { pythonClient } from '../peers/python.ts'
import { until } from '../until.ts'
import { type Bastion, startBastion } from './bastion.ts'

let bastion: Bastion
let home: string
let local: string
const SECRET = 'the content of the secret'

beforeAll(async () => {
  bastion = await startBastion({ subprotocols: ['SFTP_SESSION', 'SSH_SCP_UP', 'SSH_SCP_DOWN'] })
  home = bastion.account.home
  local = join(bastion.home.folder, 'local.txt')
  writeFileSync(local, 'something')
})
afterAll(() => bastion.stop())

beforeEach(async () => {
  for (const name of ['in', 'secret', 'way', 'chain'])
    rmSync(join(home, name), { recursive: true, force: true })
  for (const name of ['in', 'in/folder', 'secret']) mkdirSync(join(home, name))
  writeFileSync(join(home, 'in/file'), 'a file')
  writeFileSync(join(home, 'secret/key'), SECRET)
  symlinkSync(join(home, 'secret'), join(home, 'in/way'))
  symlinkSync('way', join(home, 'in/chain'))
  symlinkSync('../secret/key', join(home, 'in/key'))
  await run('chown', ['-hR', bastion.account.name, home])
})

const rules = (...file_rules: string[]) =>
  bastion.broker.must('PUT', '/connectionpolicies/SSH', { file_rules })
const perform = (...commands: string[]) => sftp(bastion.home, bastion.login(), commands)
const back = () => join(bastion.home.folder, `back-${Math.random()}`)

async function lastDenial(): Promise<Record<string, unknown> | undefined> {
  return (await bastion.events('file.denied')).at(-1)
}

describe('a folder that may not be read', () => {
  beforeEach(() => rules(`deny down ${home}/secret/**`))

  test.each([
    'secret/key',
    './in/../secret//key',
    'in/way/key',
    'in/chain/key',
    'in/key',
    'in/folder/../../secret/key',
  ])('is not read as %s', async (path) => {
    const to = back()
    const { code } = await perform(`get ${home}/${path} ${to}`)
    expect(code).not.toBe(0)
    expect(existsSync(to) && readFileSync(to, 'utf8') !== '').toBe(false)
    const relative = await scp(bastion.home, bastion.login(), { remote: path }, to)
    expect(relative.code).not.toBe(0)
    expect(await lastDenial()).toMatchObject({
      direction: 'down',
      subprotocol: 'SFTP_SESSION',
      reason: `open: the rule for files "deny down ${home}/secret/**" does not allow it`,
    })
  })

  test.each([
    ['rename', 'rename secret/key in/new', 'in/new'],
    ['rename of the folder', 'rename secret in/new', 'in/new'],
    ['rename of a link', 'rename in/way in/new', 'in/new'],
    ['hard link', 'ln secret/key in/new', 'in/new'],
    ['hard link through a link', 'ln in/way/key in/new', 'in/new'],
    ['symbolic link', `ln -s ../secret/key in/new`, 'in/new'],
    ['copy on the target', 'cp secret/key in/new', 'in/new'],
    ['copy through a link', 'cp in/key in/new', 'in/new'],
  ])('gets no other name: %s', async (_, command, made) => {
    expect((await perform(command)).code).not.toBe(0)
    expect(existsSync(join(home, made))).toBe(false)
    expect(readFileSync(join(home, 'secret/key'), 'utf8')).toBe(SECRET)
  })

  test('may be written, and everything else may be read', async () => {
    const to = back()
    const { code, stderr } = await perform(
      `put ${local} secret/new`,
      'mkdir in/more',
      'rename in/file in/more/file',
      'ln -s file in/more/link',
      'cp in/more/link in/copy',
      `get in/copy ${to}`,
      'rename in/more in/other',
      'ls in',
    )
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(readFileSync(to, 'utf8')).toBe('a file')
    expect(existsSync(join(home, 'secret/new'))).toBe(true)
  })

  test('what was linked before the rule is a file of its own', async () => {
    linkSync(join(home, 'secret/key'), join(home, 'in/old'))
    expect((await perform(`get in/old ${back()}`)).code).toBe(0)
  })

  test('old scp cannot be held to it, and says what to use instead', async () => {
    const { code, stderr } = await scp(bastion.home, bastion.login(), { remote: 'in/file' }, back(), ['-O'])
    expect(code).not.toBe(0)
    expect(stderr).toContain('use sftp, or scp without -O')
  })
})

describe('only one folder', () => {
  beforeEach(() => rules(`allow any ${home}/in/**`, 'deny any /**'))

  test('is what every client works in', async () => {
    const login = bastion.login()
    const key = join(bastion.broker.dataFolder, 'ssh', 'ssh_host_ed25519_key.pub')
    const hostFingerprint = (await run('ssh-keygen', ['-l', '-f', key])).stdout.split(' ')[1] ?? ''
    const inside = (name: string) => join(home, 'in', name)
    expect((await scp(bastion.home, login, local, { remote: inside('scp') }, ['-p'])).code).toBe(0)
    expect((await perform(`put ${local} ${inside('sftp')}`, 'ls in')).code).toBe(0)
    const putty = await pscp(bastion.home, { ...login, hostFingerprint }, local, `:${inside('pscp')}`, 'sftp')
    expect(putty.code).toBe(0)
    for (const library of ['paramiko', 'asyncssh'] as const) {
      const to = back()
      const done = await pythonClient(library, bastion.home, login, [
        { put: [local, inside(library)] },
        { get: [inside(library), to] },
        { list: join(home, 'in') },
      ])
      expect(done.slice(0, 2)).toEqual([{ ok: true }, { ok: true }])
      expect(readFileSync(to, 'utf8')).toBe('something')
    }
    for (const name of ['scp', 'sftp', 'pscp', 'paramiko', 'asyncssh'])
      expect(readFileSync(inside(name), 'utf8')).toBe('something')
  })

  test.each([
    'ls .',
    'ls in/way',
    'get in/key',
    'get secret/key',
    'rm secret/key',
    'chmod 777 secret',
    'mkdir new',
  ])('and not %s', async (command) => {
    const { code, stderr } = await perform(command)
    expect(code === 0 && !/ermission denied/.test(stderr)).toBe(false)
    expect(await lastDenial()).toMatchObject({ event: 'file.denied', severity: 'warning' })
  })
})

test('a refusal by the target is an event of its own', async () => {
  await rules()
  const target = join(home, 'in/gone')
  expect((await perform(`rm ${target}`)).code).not.toBe(0)
  expect((await scp(bastion.home, bastion.login(), { remote: target }, back(), ['-O'])).code).not.toBe(0)
  const refused = await until('both refusals', async () => {
    const found = (await bastion.events('file.failed')).filter(({ path }) => path === target)
    return found.length >= 2 ? found : undefined
  })
  expect(refused).toMatchObject([
    { subprotocol: 'SFTP_SESSION', reason: 'remove: no such file' },
    { subprotocol: 'SSH_SCP_DOWN', direction: 'down', reason: expect.stringContaining('No such file') },
  ])
})

describe('a size', () => {
  const LIMIT = 1024 * 1024
  beforeEach(() => rules('allow up /** size<=1MiB', 'deny up /**'))

  test('is counted while the file flows; what fits has its hash', async () => {
    const small = join(bastion.home.folder, 'small')
    const large = join(bastion.home.folder, 'large')
    writeFileSync(small, Buffer.alloc(LIMIT, 1))
    writeFileSync(large, Buffer.alloc(8 * LIMIT, 1))
    for (const flags of [[], ['-O']]) {
      const name = `in/by${flags.join('')}`
      expect((await scp(bastion.home, bastion.login(), small, { remote: name }, flags)).code).toBe(0)
      expect(statSync(join(home, name)).size).toBe(LIMIT)
      expect(
        (await scp(bastion.home, bastion.login(), large, { remote: `${name}-large` }, flags)).code,
      ).not.toBe(0)
      const there = join(home, `${name}-large`)
      expect(existsSync(there) ? statSync(there).size : 0).toBeLessThanOrEqual(LIMIT)
    }
    const sha256 = createHash('sha256').update(Buffer.alloc(LIMIT, 1)).digest('hex')
    const transfers = await until('both transfers', async () => {
      const found = (await bastion.events('file.transfer')).filter((event) => event['sha256'] === sha256)
      return found.length >= 2 ? found : undefined
    })
    await until(
      'the second denial',
      async () =>
        (await bastion.events('file.denied')).some(({ path }) => String(path).includes('-O-large')) ||
        undefined,
    )
    const denied = (await bastion.events('file.denied')).filter(({ path }) => String(path).includes('-large'))
    expect(denied.map(({ subprotocol, reason }) => [subprotocol, String(reason).split(':')[0]])).toEqual([
      ['SFTP_SESSION', 'write'],
      ['SSH_SCP_UP', 'transfer'],
    ])
    expect(transfers.map((event) => event['subprotocol'])).toEqual(['SFTP_SESSION', 'SSH_SCP_UP'])
  })
})

test('extensions, also of names that a file gets later', async () => {
  await rules('deny up /** ext=exe')
  expect((await perform(`put ${local} in/tool.exe`)).code).not.toBe(0)
  expect((await perform(`put ${local} in/tool.txt`, 'rename in/tool.txt in/tool.EXE')).code).not.toBe(0)
  expect((await scp(bastion.home, bastion.login(), local, { remote: 'in/tool.exe' }, ['-O'])).code).not.toBe(
    0,
  )
  expect(existsSync(join(home, 'in/tool.exe')) || existsSync(join(home, 'in/tool.EXE'))).toBe(false)
  expect(existsSync(join(home, 'in/tool.txt'))).toBe(true)
})
