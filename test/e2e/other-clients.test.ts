/** Clients that are not OpenSSH: PuTTY's tools, dropbear's, and Python's libraries. */
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { run } from '../peers/process.ts'
import { dbclient, plink, plinkTerminal, pscp, psftp } from '../peers/putty.ts'
import { type PythonStep, pythonClient } from '../peers/python.ts'
import { type Bastion, startBastion } from './bastion.ts'

let bastion: Bastion
let file: string
let hostFingerprint: string

beforeAll(async () => {
  bastion = await startBastion()
  file = join(bastion.home.folder, 'file.bin')
  writeFileSync(file, randomBytes(1_000_003))
  const key = join(bastion.broker.dataFolder, 'ssh', 'ssh_host_ed25519_key.pub')
  const { stdout } = await run('ssh-keygen', ['-l', '-f', key])
  hostFingerprint = stdout.split(' ')[1] ?? ''
})
afterAll(() => bastion.stop())

const digestOf = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex')
const remote = (name: string) => join(bastion.account.home, name)
const login = () => bastion.login({ hostFingerprint })

describe('PuTTY', () => {
  test('plink runs a command, by password and by key', async () => {
    for (const identity of [undefined, bastion.key.path]) {
      const { code, stdout, stderr } = await plink(
        bastion.home,
        identity === undefined
          ? login()
          : { port: login().port, user: login().user, hostFingerprint, identity },
        'echo out; echo err >&2; exit 3',
      )
      expect({ code, stdout }).toEqual({ code: 3, stdout: 'out\n' })
      // PuTTY announces the password prompt there before it.
      expect(stderr).toMatch(/(^|\n)err\n$/)
    }
  })

  test('plink opens a shell on a terminal', async () => {
    const terminal = await plinkTerminal(bastion.home, login())
    await terminal.expect('$ ')
    terminal.send('stty size; exit 5\r')
    await terminal.expect('24 80')
    expect(await terminal.exit()).toBe(5)
  })

  test.each(['sftp', 'scp'] as const)('pscp over %s, both ways', async (protocol) => {
    const name = `pscp-${protocol}.bin`
    const up = await pscp(bastion.home, login(), file, `:${remote(name)}`, protocol)
    expect(up.code).toBe(0)
    expect(digestOf(remote(name))).toBe(digestOf(file))
    const back = join(bastion.home.folder, name)
    expect((await pscp(bastion.home, login(), `:${remote(name)}`, back, protocol)).code).toBe(0)
    expect(digestOf(back)).toBe(digestOf(file))
  })

  test('psftp', async () => {
    const { code } = await psftp(bastion.home, login(), [`put ${file} ${remote('psftp.bin')}`])
    expect(code).toBe(0)
    expect(digestOf(remote('psftp.bin'))).toBe(digestOf(file))
  })
})

/** dbclient sends its first key exchange packet on a guess (RFC 4253 7.1). */
test('dropbear: dbclient', async () => {
  const { code, stdout } = await dbclient(bastion.home, bastion.login(), 'cat; exit 9', {
    input: 'through\n',
  })
  expect({ code, stdout }).toEqual({ code: 9, stdout: 'through\n' })
})

describe.each(['paramiko', 'asyncssh'] as const)('%s', (library) => {
  test('command, shell, and files over SFTP', async () => {
    const name = `${library}.bin`
    const back = join(bastion.home.folder, name)
    const steps: PythonStep[] = [
      { exec: 'cat; exit 4', input: 'text' },
      { shell: 'exit 6\r' },
      { put: [file, remote(name)] },
      { get: [remote(name), back] },
      { list: bastion.account.home },
    ]
    const [command, shell, put, get, list] = await pythonClient(library, bastion.home, bastion.login(), steps)
    expect(command).toMatchObject({ code: 4, stdout: 'text' })
    expect(shell).toMatchObject({ code: 6 })
    expect([put, get]).toEqual([{ ok: true }, { ok: true }])
    expect(list?.names).toContain(name)
    expect(digestOf(back)).toBe(digestOf(file))
  })

  test('by public key', async () => {
    const { port, user } = bastion.login()
    const [result] = await pythonClient(library, bastion.home, { port, user, identity: bastion.key.path }, [
      { exec: 'id -un' },
    ])
    expect(result).toMatchObject({ code: 0, stdout: `${bastion.account.name}\n` })
  })
})
