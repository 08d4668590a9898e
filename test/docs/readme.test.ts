/** The README's five-minute walk, as by its reader: its own shell blocks, in two terminals. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { isOnPostgres, testDatabase } from '../peers/databases.ts'
import { freePort } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { type Sshd, startSshd } from '../peers/sshd.ts'
import { openTerminal, type Terminal } from '../peers/terminal.ts'
import { canCreateUsers, createSystemUser, type SystemUser } from '../peers/users.ts'
import { adapt, ROOT, walkOf } from './walks.ts'

const START_MS = 90_000
const STEP_MS = 30_000

describe.runIf(canCreateUsers())('as root, with a target user', () => {
  describeWithPeers('the walk of the README', ['sshd', 'ssh', 'curl'], () => {
    let folder: string
    let user: SystemUser
    let sshd: Sshd
    const terminals: Terminal[] = []

    beforeAll(async () => {
      user = await createSystemUser()
      sshd = await startSshd({ users: [{ name: user.name }] })
    })

    afterAll(async () => {
      await sshd.stop()
      await user.remove()
    })

    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), 'sallyport-walk-'))
    })

    afterEach(async () => {
      for (const terminal of terminals.splice(0)) await terminal.close()
      rmSync(folder, { recursive: true, force: true })
    })

    /** Runs a script in its own shell, in the clone. */
    function open(name: string, script: string): Terminal {
      const file = join(folder, name)
      writeFileSync(file, `set -eu\n${script}`)
      const env = { ...process.env, PATH: `${shadowSsh()}:${process.env.PATH}` }
      const terminal = openTerminal('bash', [file], { cwd: ROOT, env, columns: 120, lines: 40 })
      terminals.push(terminal)
      return terminal
    }

    /** Makes an ssh without known hosts that leaves those of the user who runs the tests alone. */
    function shadowSsh(): string {
      const bin = join(folder, 'bin')
      mkdirSync(bin, { recursive: true })
      const config = join(folder, 'ssh_config')
      const knownHosts = join(folder, 'known_hosts')
      writeFileSync(
        config,
        `UserKnownHostsFile ${knownHosts}\nGlobalKnownHostsFile /dev/null\nIdentityFile none\n`,
      )
      writeFileSync(join(bin, 'ssh'), `#!/bin/sh\nexec ${findProgram('ssh')} -F ${config} "$@"\n`, {
        mode: 0o755,
      })
      return bin
    }

    test('works as it stands there', { timeout: 300_000 }, async () => {
      const place = {
        '~/sallyport-walk': join(folder, 'walk'),
        '8443': String(await freePort()),
        '2222': String(await freePort()),
        '9464': String(await freePort()),
        'TARGET=192.0.2.10': 'TARGET=127.0.0.1',
        'PORT=22\n': `PORT=${sshd.port}\n`,
        'ACCOUNT=root': `ACCOUNT=${user.name}`,
      }
      if (isOnPostgres())
        Object.assign(place, {
          'data_dir: data': `data_dir: data\ndatabase: { url: "${(await testDatabase({ isEmpty: true })).url}" }`,
        })
      const mark = '\n#### second terminal\n'
      const blocks = walkOf('README.md')
      expect(blocks.map(({ name }) => name)).toEqual(['start', 'target', 'api', 'api', 'ssh', 'audit'])
      const [first, ...rest] = blocks.map(({ text }) => text)
      const [start = '', others = ''] = adapt([first, rest.join('')].join(mark), place).split(mark)

      const broker = open('start.sh', start)
      await broker.expect('sallyport is ready', START_MS)

      const reader = open('walk.sh', others)
      await reader.expect(`password of ${user.name} on 127.0.0.1: `)
      reader.send(`${user.password}\r`)
      await reader.expect('continue connecting', STEP_MS)
      reader.send('yes\r')
      await reader.expect('assword', STEP_MS)
      reader.send('known at the first door\r')
      await reader.expect(user.prompt, STEP_MS)
      reader.send('echo walked-$((6 * 7))\r')
      await reader.expect('walked-42')
      reader.send('exit\r')

      // list, verify, export as text, play: the last two show the session.
      const shown = await reader.expect(/walked-42[\s\S]*walked-42/, STEP_MS)
      expect(shown).toContain('ops1')
      reader.send('q')
      expect(await reader.exit(STEP_MS)).toBe(0)
      expect(reader.output()).not.toContain(user.password)
      const cast = readFileSync(join(folder, 'walk', 'session.cast'), 'utf8').split('\n')
      expect(JSON.parse(cast[0]!)).toMatchObject({ version: 2 })
      expect(cast.join('')).toContain('walked-42')

      broker.send('\x03')
      await broker.exit(STEP_MS)
    })
  })
})
