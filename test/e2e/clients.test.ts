/** Ordinary clients through the bastion: both ends get the same bytes as over a direct connection. */
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { git, lftp, rsync, scp, sftp, ssh, sshfs, sshTerminal } from '../peers/openssh.ts'
import { run } from '../peers/process.ts'
import { openTerminal } from '../peers/terminal.ts'
import { type Bastion, startBastion } from './bastion.ts'

const FILE_BYTES = 3_000_001

let bastion: Bastion
let file: string
let digest: string

beforeAll(async () => {
  bastion = await startBastion({ credential: 'password' })
  file = join(bastion.home.folder, 'file.bin')
  const bytes = randomBytes(FILE_BYTES)
  writeFileSync(file, bytes)
  digest = sha256(bytes)
})
afterAll(() => bastion.stop())

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const digestOf = (path: string) => sha256(readFileSync(path))
/** Returns a path in the account's home on the target. */
const remote = (name: string) => join(bastion.account.home, name)

describe('sign-in', () => {
  test.each(['password', 'keyboard-interactive'] as const)('by %s', async (method) => {
    const { code, stdout } = await ssh(bastion.home, bastion.login({ method }), ['id -un'])
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${bastion.account.name}\n` })
  })

  test('by public key', async () => {
    const { code, stdout } = await ssh(bastion.home, bastion.login({ identity: bastion.key.path }), [
      'id -un',
    ])
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${bastion.account.name}\n` })
  })

  test('with every form of the login string', async () => {
    const { name } = bastion.account
    for (const user of [
      `ops1:${name}@srv1`,
      `ops1+${name}+srv1+ssh`,
      `ops1:${name}@local:srv1:ssh`,
      'ops1:@srv1',
      'ops1+srv1',
    ]) {
      const { code, stdout, stderr } = await ssh(bastion.home, bastion.login({ user }), ['id -un'])
      expect({ user, code, stdout, stderr }).toEqual({ user, code: 0, stdout: `${name}\n`, stderr: '' })
    }
  })
})

describe('commands', () => {
  test('output, error output and exit code arrive apart and unchanged', async () => {
    const { code, stdout, stderr } = await ssh(bastion.home, bastion.login(), [
      'echo out; echo err >&2; exit 42',
    ])
    expect({ code, stdout, stderr }).toEqual({ code: 42, stdout: 'out\n', stderr: 'err\n' })
  })

  test('input goes to the command, and its end too', async () => {
    const input = randomBytes(1_000_000)
    const { bytes, code } = await ssh(bastion.home, bastion.login(), ['cat'], { input })
    expect(code).toBe(0)
    expect(bytes.equals(input)).toBe(true)
  })

  test('a command with no input at all ends', async () => {
    expect((await ssh(bastion.home, bastion.login(), ['true'])).code).toBe(0)
  })

  test('ended by a signal: the same code as without the bastion', async () => {
    const command = ['kill -TERM $$']
    const through = await ssh(bastion.home, bastion.login(), command)
    const direct = await ssh(
      bastion.home,
      { port: bastion.sshd.port, user: bastion.account.name, password: bastion.account.password },
      command,
    )
    expect(through.code).toBe(direct.code)
  })

  test('environment: locale passes, what could run programs does not', async () => {
    const login = bastion.login({ options: ['SetEnv=LC_ALL=C.UTF-8 LD_PRELOAD=/tmp/x.so BASH_ENV=/tmp/x'] })
    const { stdout } = await ssh(bastion.home, login, ['env'])
    expect(stdout).not.toMatch(/LD_PRELOAD|BASH_ENV/)
  })

  test('several at once over one connection (ControlMaster)', async () => {
    const control = join(bastion.home.folder, 'control')
    const options = [`ControlPath=${control}`, 'ControlMaster=auto', 'ControlPersist=20']
    const results = await Promise.all(
      [0, 1, 2, 3].map(async (n) => {
        if (n > 0) await new Promise((resolve) => setTimeout(resolve, 1500))
        return await ssh(bastion.home, bastion.login({ options }), [`sleep 1; echo ${n}`])
      }),
    )
    expect(results.map(({ stdout }) => stdout)).toEqual(['0\n', '1\n', '2\n', '3\n'])
    await ssh(bastion.home, bastion.login({ options }), [], { flags: ['-O', 'exit'] })
  })
})

describe('a shell', () => {
  test('size, resize, terminal modes and exit code', async () => {
    const terminal = sshTerminal(bastion.home, bastion.login(), [], { columns: 101, lines: 41 })
    await terminal.expect('$ ')
    terminal.send('stty size; echo T=$TERM\r')
    expect(await terminal.expect(/T=xterm\S+\r\n/)).toMatch(/41 101[\s\S]*T=xterm-256color/)
    terminal.resize(120, 50)
    await new Promise((resolve) => setTimeout(resolve, 300))
    terminal.send('stty size\r')
    await terminal.expect('50 120')
    terminal.send('exit 7\r')
    expect(await terminal.exit()).toBe(7)
  })

  test('Ctrl-C interrupts the program, not the session', async () => {
    const terminal = sshTerminal(bastion.home, bastion.login())
    await terminal.expect('$ ')
    terminal.send('sleep 100\r')
    await new Promise((resolve) => setTimeout(resolve, 500))
    terminal.send('\x03')
    terminal.send('echo code $?\r')
    await terminal.expect('code 130')
    await terminal.close()
  })

  test('terminal modes that the client set are those on the target', async () => {
    const script = `stty intr ^K erase ^H; exec "$0" "$@"`
    const args = ['-c', script, 'ssh', '-tt', '-F', bastion.home.sshConfig]
    args.push('-o', 'PreferredAuthentications=password', '-p', String(bastion.broker.ports.ssh))
    args.push('-l', bastion.login().user, '127.0.0.1', 'stty -a')
    const terminal = openTerminal('/bin/sh', args, { env: bastion.home.env(bastion.password) })
    await terminal.expect(/intr = \^K/)
    await terminal.exit()
    expect(terminal.output()).toMatch(/erase = \^H/)
  })
})

describe('files', () => {
  test.each([
    ['scp over SFTP', []],
    ['scp -O', ['-O']],
  ])('%s, both ways', async (_, flags) => {
    const name = `scp${flags.length}.bin`
    const up = await scp(bastion.home, bastion.login(), file, { remote: remote(name) }, flags)
    expect({ code: up.code, stderr: up.stderr }).toEqual({ code: 0, stderr: '' })
    expect(digestOf(remote(name))).toBe(digest)
    const back = join(bastion.home.folder, name)
    expect((await scp(bastion.home, bastion.login(), { remote: remote(name) }, back, flags)).code).toBe(0)
    expect(digestOf(back)).toBe(digest)
  })

  test('scp -O of a folder, with names that have blanks', async () => {
    const folder = join(bastion.home.folder, 'tree')
    mkdirSync(join(folder, 'a b'), { recursive: true })
    writeFileSync(join(folder, 'a b', "it's"), 'content')
    const { code, stderr } = await scp(bastion.home, bastion.login(), folder, { remote: remote('tree') }, [
      '-O',
      '-r',
    ])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(readFileSync(join(remote('tree'), 'a b', "it's"), 'utf8')).toBe('content')
  })

  test('sftp', async () => {
    const back = join(bastion.home.folder, 'sftp.bin')
    const commands = [
      `put ${file} ${remote('sftp.bin')}`,
      `get ${remote('sftp.bin')} ${back}`,
      `rm ${remote('sftp.bin')}`,
    ]
    const { code, stderr } = await sftp(bastion.home, bastion.login(), commands)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(digestOf(back)).toBe(digest)
  })

  test('rsync, both ways', async () => {
    expect((await rsync(bastion.home, bastion.login(), file, { remote: remote('rsync.bin') })).code).toBe(0)
    expect(digestOf(remote('rsync.bin'))).toBe(digest)
    const back = join(bastion.home.folder, 'rsync.bin')
    expect((await rsync(bastion.home, bastion.login(), { remote: remote('rsync.bin') }, back)).code).toBe(0)
    expect(digestOf(back)).toBe(digest)
  })

  test('git push and clone', async () => {
    await ssh(bastion.home, bastion.login(), [`git init -q --bare ${remote('repo.git')}`])
    const work = join(bastion.home.folder, 'work')
    const steps = [
      ['init', '-q', '-b', 'main', work],
      ['-C', work, 'commit', '-q', '--allow-empty', '-m', 'one'],
      ['-C', work, 'push', '-q', `127.0.0.1:${remote('repo.git')}`, 'main'],
      ['clone', '-q', '-b', 'main', `127.0.0.1:${remote('repo.git')}`, `${work}2`],
    ]
    for (const step of steps) {
      const { code, stderr } = await git(bastion.home, bastion.login(), step)
      expect({ step, code, stderr }).toEqual({ step, code: 0, stderr: '' })
    }
    const log = await run('git', ['-C', `${work}2`, 'log', '--format=%s'])
    expect(log.stdout).toBe('one\n')
  })

  test('lftp', async () => {
    const { code, stderr } = await lftp(bastion.home, bastion.login(), [
      `put ${file} -o ${remote('lftp.bin')}`,
    ])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(digestOf(remote('lftp.bin'))).toBe(digest)
  })

  test('sshfs', async () => {
    const mount = await sshfs(bastion.home, bastion.login(), bastion.account.home)
    try {
      writeFileSync(join(mount.path, 'sshfs.txt'), 'mounted')
      expect(readFileSync(remote('sshfs.txt'), 'utf8')).toBe('mounted')
    } finally {
      await mount.unmount()
    }
  })
})
