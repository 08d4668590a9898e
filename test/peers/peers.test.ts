/**
 * The peers by themselves, without a bastion: each client reaches a real server here as it does through the
 * bastion in other tests, so a failure only there is the bastion's.
 */
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  createHome,
  dbclient,
  git,
  type Home,
  type Login,
  lftp,
  plink,
  plinkTerminal,
  pscp,
  psftp,
  pythonClient,
  rsync,
  scp,
  sftp,
  ssh,
  sshfs,
  sshTerminal,
} from './clients.ts'
import { type Dropbear, startDropbear } from './dropbear.ts'
import { generateKey, type SshKey } from './keys.ts'
import { run } from './process.ts'
import { describeWithPeers, findProgram } from './program.ts'
import { type Sshd, startSshd } from './sshd.ts'
import { canCreateUsers, createSystemUser, type SystemUser } from './users.ts'

const root = canCreateUsers()

let home: Home
let user: SystemUser
let key: SshKey
let sshd: Sshd
let byPassword: Login
let byKey: Login
let file: string
let content: Buffer

const digest = (data: Buffer): string => createHash('sha256').update(data).digest('hex')
/** Returns a path in the user's home folder, where the test (root) looks for the client's files. */
const remote = (name: string): string => join(user.home, name)
const local = (name: string): string => join(home.folder, name)

beforeAll(async () => {
  if (!root) return
  home = createHome()
  user = await createSystemUser()
  key = await generateKey(home.folder)
  sshd = await startSshd({ users: [{ name: user.name, authorizedKeys: [key.publicKey] }] })
  const server = { port: sshd.port, user: user.name, hostFingerprint: sshd.hostKeys[0]!.fingerprint }
  byPassword = { ...server, password: user.password }
  byKey = { ...server, identity: key.path }
  content = randomBytes(300_000)
  file = local('file.bin')
  writeFileSync(file, content)
})

afterAll(async () => {
  if (!root) return
  await sshd.stop()
  await user.remove()
  home.remove()
})

describe.runIf(root)('as root, with a throw-away user', () => {
  describeWithPeers('openssh', ['sshd', 'ssh', 'scp', 'sftp', 'ssh-keygen'], () => {
    test.each(['password', 'keyboard-interactive'] as const)('ssh logs in by %s', async (method) => {
      const done = await ssh(home, { ...byPassword, method }, ['id -un; echo oops >&2; exit 7'])
      expect(done).toMatchObject({ code: 7, stdout: `${user.name}\n`, stderr: 'oops\n' })
      expect(sshd.log()).toContain(
        `Accepted ${method === 'password' ? 'password' : 'keyboard-interactive/pam'} for`,
      )
    })

    test('ssh logs in by key, and not by a wrong password', async () => {
      expect(await ssh(home, byKey, ['cat'], { input: 'hello' })).toMatchObject({ code: 0, stdout: 'hello' })
      const wrong = await ssh(home, { ...byPassword, password: 'wrong' }, ['true'])
      expect(wrong.code).toBe(255)
      expect(wrong.stderr).toContain('Permission denied')
    })

    test('a shell on a terminal: typed password, echo, resize, exit code', async () => {
      const terminal = sshTerminal(home, byPassword, [], { typed: true, columns: 100, lines: 30 })
      await terminal.expect('assword')
      terminal.send(`${user.password}\r`)
      await terminal.expect(user.prompt)
      terminal.send('stty size\r')
      await terminal.expect('30 100')
      await terminal.expect(user.prompt)
      terminal.resize(132, 43)
      terminal.send('stty size\r')
      await terminal.expect('43 132')
      await terminal.expect(user.prompt)
      terminal.send('exit 9\r')
      expect(await terminal.exit()).toBe(9)
    })

    test('a host key that differs from the trusted one is refused', async () => {
      const other = createHome()
      other.trust(sshd.port, (await generateKey(other.folder)).publicKey)
      const done = await ssh(other, byKey, ['true'])
      expect(done.code).toBe(255)
      expect(done.stderr).toContain('HOST IDENTIFICATION HAS CHANGED')
      other.remove()
    })

    test.each([[[]], [['-O']]])('scp %s copies both ways', async (flags) => {
      expect(await scp(home, byPassword, file, { remote: 'up.bin' }, flags)).toMatchObject({ code: 0 })
      expect(digest(readFileSync(remote('up.bin')))).toBe(digest(content))
      expect(await scp(home, byKey, { remote: 'up.bin' }, local('down.bin'), flags)).toMatchObject({
        code: 0,
      })
      expect(digest(readFileSync(local('down.bin')))).toBe(digest(content))
    })

    test('sftp copies both ways and stops at a failure', async () => {
      const both = [`put ${file} sftp.bin`, `get sftp.bin ${local('sftp.bin')}`]
      expect(await sftp(home, byPassword, both)).toMatchObject({ code: 0 })
      expect(digest(readFileSync(local('sftp.bin')))).toBe(digest(content))
      expect((await sftp(home, byKey, ['get nothing'])).code).toBe(1)
    })

    describeWithPeers('rsync', ['rsync'], () => {
      test('copies a folder both ways', async () => {
        mkdirSync(local('tree/inner'), { recursive: true })
        writeFileSync(local('tree/inner/a'), content)
        expect(await rsync(home, byPassword, local('tree/'), { remote: 'tree/' })).toMatchObject({ code: 0 })
        expect(await rsync(home, byKey, { remote: 'tree/' }, local('back/'))).toMatchObject({ code: 0 })
        expect(digest(readFileSync(local('back/inner/a')))).toBe(digest(content))
      })
    })

    describeWithPeers('git', ['git'], () => {
      test('pushes and clones', async () => {
        expect(await ssh(home, byKey, ['git init -q --bare repo.git'])).toMatchObject({ code: 0 })
        const work = local('work')
        for (const args of [
          ['clone', '-q', '127.0.0.1:repo.git', work],
          ['-C', work, 'commit', '-q', '--allow-empty', '-m', 'first'],
          ['-C', work, 'push', '-q', 'origin', 'HEAD'],
        ]) {
          expect(await git(home, byPassword, args)).toMatchObject({ code: 0 })
        }
        const shown = await git(home, byKey, ['ls-remote', '127.0.0.1:repo.git'])
        expect(shown.stdout).toContain('refs/heads/')
      })
    })

    describeWithPeers('lftp', ['lftp'], () => {
      test('copies both ways', async () => {
        const done = await lftp(home, byPassword, [
          `put ${file} -o lftp.bin`,
          `get lftp.bin -o ${local('lftp.bin')}`,
        ])
        expect(done).toMatchObject({ code: 0 })
        expect(digest(readFileSync(local('lftp.bin')))).toBe(digest(content))
      })
    })

    describeWithPeers('sshfs', ['sshfs'], () => {
      test('mounts a folder', async () => {
        const mount = await sshfs(home, byPassword, user.home)
        try {
          writeFileSync(join(mount.path, 'sshfs.bin'), content)
          expect(digest(readFileSync(join(mount.path, 'sshfs.bin')))).toBe(digest(content))
        } finally {
          await mount.unmount()
        }
        expect(digest(readFileSync(remote('sshfs.bin')))).toBe(digest(content))
      })
    })

    describeWithPeers('putty', ['plink', 'pscp', 'psftp', 'puttygen'], () => {
      test('plink runs a command by password and by key', async () => {
        const done = await plink(home, byPassword, 'id -un; exit 5')
        expect(done).toMatchObject({ code: 5, stdout: `${user.name}\n` })
        expect(await plink(home, byKey, 'echo key')).toMatchObject({ code: 0, stdout: 'key\n' })
      })

      test('plink has a shell on a terminal', async () => {
        const terminal = await plinkTerminal(home, byPassword)
        await terminal.expect(user.prompt)
        terminal.send('exit 4\r')
        expect(await terminal.exit()).toBe(4)
      })

      test.each(['sftp', 'scp'] as const)('pscp copies both ways by %s', async (protocol) => {
        expect(await pscp(home, byPassword, file, ':putty.bin', protocol)).toMatchObject({ code: 0 })
        expect(await pscp(home, byPassword, ':putty.bin', local('putty.bin'), protocol)).toMatchObject({
          code: 0,
        })
        expect(digest(readFileSync(local('putty.bin')))).toBe(digest(content))
      })

      test('psftp copies both ways', async () => {
        const both = [`put ${file} psftp.bin`, `get psftp.bin ${local('psftp.bin')}`]
        expect(await psftp(home, byPassword, both)).toMatchObject({ code: 0 })
        expect(digest(readFileSync(local('psftp.bin')))).toBe(digest(content))
      })
    })

    describe.each(['paramiko', 'asyncssh'] as const)('%s', (library) => {
      describeWithPeers('client', [`python3-${library}`], () => {
        test('runs commands and copies files', async () => {
          const results = await pythonClient(library, home, byPassword, [
            { exec: 'cat; exit 3', input: 'hi' },
            { put: [file, 'python.bin'] },
            { get: ['python.bin', local(`${library}.bin`)] },
            { list: '.' },
            { shell: 'echo in-$((40+2))\nexit 2\n' },
          ])
          expect(results[0]).toMatchObject({ code: 3, stdout: 'hi', stderr: '' })
          expect(digest(readFileSync(local(`${library}.bin`)))).toBe(digest(content))
          expect(results[3]?.names).toContain('python.bin')
          expect(results[4]).toMatchObject({ code: 2, stdout: expect.stringContaining('in-42') })
        })

        test('logs in by key, and says when it may not', async () => {
          expect(await pythonClient(library, home, byKey, [{ exec: 'true' }])).toMatchObject([{ code: 0 }])
          const wrong = await pythonClient(library, home, { ...byPassword, password: 'wrong' }, [
            { exec: 'true' },
          ])
          expect(wrong.at(-1)?.error).toMatch(/[Aa]uthentication|denied/)
        })
      })
    })
  })

  describeWithPeers('dropbear', ['dropbear', 'dropbearkey', 'dbclient', 'ssh', 'sshd'], () => {
    let dropbear: Dropbear
    beforeAll(async () => {
      dropbear = await startDropbear({ user, authorizedKeys: [key.publicKey] })
    })
    afterAll(async () => dropbear.stop())

    test('ssh logs in by password and by key', async () => {
      const login = { port: dropbear.port, user: user.name }
      const password = await ssh(home, { ...login, password: user.password }, ['exit 6'])
      expect(password).toMatchObject({ code: 6, stderr: '' })
      expect(await ssh(home, { ...login, identity: key.path }, ['echo hi'])).toMatchObject({ stdout: 'hi\n' })
    })

    test('its host key has the fingerprint that is given', async () => {
      const scan = await run(findProgram('ssh-keyscan'), ['-p', String(dropbear.port), '127.0.0.1'])
      const shown = await run(findProgram('ssh-keygen'), ['-l', '-f', '-'], { input: scan.stdout })
      expect(shown.stdout).toContain(dropbear.fingerprint)
    })

    test('dbclient runs a command on sshd', async () => {
      const done = await dbclient(home, byPassword, 'id -un; exit 5')
      expect(done).toMatchObject({ code: 5, stdout: `${user.name}\n` })
    })
  })
})
