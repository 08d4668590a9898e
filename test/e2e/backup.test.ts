/** The drill: a backup of a running broker, the loss of its data folder, and a complete restore. */
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Broker, startBroker } from '../peers/broker.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { type RunResult, run } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import type { Terminal } from '../peers/terminal.ts'
import { until } from '../until.ts'
import { type Bastion, eventsIn, type SessionRow, startBastion } from './bastion.ts'
import { filesBelow, filesWith, framesOf, sallyport, streamOf } from './recorded.ts'

/** For tests that start brokers and programs: on a busy machine each takes seconds. */
const SLOW = { timeout: 300_000 }
/** Prints about a MiB per second until it is stopped. */
const BULK = `exec perl -e '$|=1; open F,"/dev/urandom"; for(;;) { read F,$b,13000; print unpack("H*",$b),"\\n"; select undef,undef,undef,.02 }'`
const VERIFIER = join(import.meta.dirname, '..', '..', 'bin', 'verify.mjs')

describeWithPeers('backup and restore', ['sshd', 'ssh'], () => {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-backup-'))
  const dataFolder = join(folder, 'data')
  const masterKey = join(folder, 'elsewhere', 'master.key')
  const survived = join(folder, 'recordings')
  const whole = join(folder, 'whole')
  const small = join(folder, 'small')
  const config = { master_key: { file: masterKey } }
  let bastion: Bastion
  let again: Broker | undefined
  let terminal: Terminal
  let bulk: Promise<RunResult>
  let before: SessionRow
  let running: SessionRow[]
  let later: SessionRow

  const restart = () => startBroker({ dataFolder, ports: bastion.broker.ports, config })
  const cli = (...words: string[]) => sallyport(bastion.broker, words)
  const sessionsOf = (broker: Broker, query = 'limit=-1') =>
    broker.must<SessionRow[]>('GET', `/sessions?${query}`)
  const byId = async (broker: Broker, id: string) => (await sessionsOf(broker)).find((one) => one.id === id)
  const rowOf = (stdout: string) => JSON.parse(stdout).audit.row as number

  beforeAll(async () => {
    mkdirSync(join(folder, 'elsewhere'), { mode: 0o700 })
    bastion = await startBastion({ credential: 'password', broker: { dataFolder, config } })
    const shell = sshTerminal(bastion.home, bastion.login())
    await shell.expect(/[$#] /)
    shell.send('echo be"fore" the backup; exit\r')
    await shell.exit()
    before = (await bastion.closedSessions(1))[0]!
    terminal = sshTerminal(bastion.home, bastion.login())
    await terminal.expect(/[$#] /)
    terminal.send('echo still"here"\r')
    await terminal.expect('stillhere')
    bulk = ssh(bastion.home, bastion.login(), [BULK], { timeout: 300_000 })
    running = await until('two sessions', async () => {
      const rows = await sessionsOf(bastion.broker, 'status=current')
      return rows.length === 2 ? rows : undefined
    })
    await until('much output', () => {
      const files = filesBelow(join(dataFolder, 'recordings'))
      return files.some((file) => statSync(file).size > 500_000) ? true : undefined
    })
  }, 300_000)

  afterAll(async () => {
    await again?.stop()
    await bastion.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('is made while sessions run, and none of them notices', SLOW, async () => {
    const made = await cli('backup', whole, '--recordings', '--json')
    expect(made).toMatchObject({ code: 0, stderr: '' })
    const manifest = JSON.parse(made.stdout)
    expect(manifest).toMatchObject({
      sessions: { all: 3, running: 2 },
      recordings: { all: 3, containers: true },
      master_key: { included: false },
    })
    const state = await cli('backup', small)
    expect(state).toMatchObject({ code: 0, stderr: '' })
    expect(state.stdout).toContain('3 sessions (2 running)')
    expect(state.stdout).toContain('without the master key')

    terminal.send('echo and"after"\r')
    await terminal.expect('andafter')
    const done = await ssh(bastion.home, bastion.login(), ['echo newer than the backup'])
    expect(done).toMatchObject({ code: 0 })
    later = (await bastion.closedSessions(2)).find(({ id }) => id !== before.id)!
    expect(await sessionsOf(bastion.broker, 'status=current')).toHaveLength(2)
    expect((await cli('recordings', 'verify', running[0]!.id)).stdout).toContain('ok, open')
  })

  test('holds no secret that opens it, and nothing that others may read', () => {
    const key = readFileSync(masterKey, 'utf8').trim()
    expect(filesWith(whole, [key, bastion.account.password, bastion.password, 'PRIVATE KEY'])).toEqual([])
    const names = filesBelow(whole).map((file) => file.slice(whole.length + 1))
    expect(names).not.toContain('master.key')
    expect(names.filter((name) => name.includes('search.db'))).toEqual([])
    for (const file of filesBelow(whole)) expect([file, statSync(file).mode & 0o077]).toEqual([file, 0])
    expect(filesBelow(small).filter((file) => file.endsWith('session.rec'))).toEqual([])
    expect(filesBelow(small).filter((file) => file.endsWith('/key.age'))).toHaveLength(3)
  })

  test('a restore does not touch a folder that is in use', SLOW, async () => {
    const done = await cli('restore', whole)
    expect(done).toMatchObject({ code: 1, stdout: '' })
    expect(done.stderr).toContain(`in use by process ${bastion.broker.pid}`)
  })

  describe('after the loss of the whole data folder', () => {
    let told: RunResult

    beforeAll(async () => {
      await bastion.broker.kill()
      await Promise.all([bulk, terminal.close()])
      cpSync(join(dataFolder, 'recordings'), survived, { recursive: true })
      rmSync(dataFolder, { recursive: true })
      told = await cli('restore', whole)
    }, 300_000)

    test('it is as it was, and check says so', SLOW, async () => {
      expect(told).toMatchObject({ code: 0, stderr: '' })
      expect(told.stdout).toContain('2 sessions ran at that moment')
      expect(statSync(dataFolder).mode & 0o777).toBe(0o700)
      const checked = await cli('check')
      expect(checked.stdout).toMatch(/^ok +keys +the master key opens the vault$/m)
      expect(checked.stdout).toMatch(/^ok +audit +\d+ rows in order$/m)
      expect(checked.code).toBe(0)
    })

    test(
      'people sign in as before, by a host key that they know, to a target by its stored secret',
      SLOW,
      async () => {
        again = await restart()
        expect(eventsIn(again.log()).find(({ event }) => event === 'service.start')).toMatchObject({
          reason: expect.stringContaining('restored from the backup of'),
        })
        // the old key is in known_hosts: another one would be refused
        expect(await ssh(bastion.home, bastion.login(), ['echo back'])).toMatchObject({
          code: 0,
          stdout: 'back\n',
        })
      },
    )

    test('the recordings play and verify', SLOW, async () => {
      const played = await cli('recordings', 'export', before.id, '--format', 'txt')
      expect(played.stdout).toContain('before the backup')
      expect(await cli('recordings', 'verify')).toMatchObject({ code: 0, stderr: '' })
      expect(await byId(again!, before.id)).toMatchObject({
        result: 'success',
        recording: before.recording!,
      })
    })

    test('sessions that ran are closed up to the backup, and say so', SLOW, async () => {
      expect(await sessionsOf(again!, 'status=current')).toEqual([])
      for (const { id } of running) {
        const row = await byId(again!, id)
        expect(row).toMatchObject({ result: 'lost', recording: { state: 'recovered' } })
        expect(row?.reason).toMatch(
          /^it ran when the backup of \S+Z was made, which the database was restored from; /,
        )
        expect(row?.reason).toMatch(/sealed up to .*, 0 bytes .* what came after that is missing$/)
        const output = streamOf(await framesOf(again!, id), 'output').toString()
        expect(output.length).toBeGreaterThan(10)
        expect(output).not.toContain('andafter')
      }
      expect(await byId(again!, later.id)).toBeUndefined()
    })

    test('the audit log is in order, and tells of the restore', SLOW, async () => {
      const verified = await cli('audit', 'verify')
      expect(verified).toMatchObject({ code: 0, stderr: '' })
      const exported = (await cli('audit', 'export')).stdout.trim().split('\n')
      const rows = exported.map((line) => JSON.parse(line))
      const restored = rows.find(({ code }) => code === 'backup.restore')
      const { row, hash } = JSON.parse(readFileSync(join(whole, 'manifest.json'), 'utf8')).audit
      expect(restored.fields).toMatchObject({ digest: hash, object: whole })
      expect(rows[row - 1]).toMatchObject({ sequence: row, hash })
      expect(await cli('audit', 'verify', '--head', `${row}:${hash}`)).toMatchObject({ code: 0 })
    })

    test('and a backup can be made while nothing runs', SLOW, async () => {
      await again?.stop()
      again = undefined
      const made = await cli('backup', join(folder, 'stopped'), '--recordings', '--json')
      expect(made).toMatchObject({ code: 0, stderr: '' })
      expect(JSON.parse(made.stdout)).toMatchObject({ sessions: { all: 4, running: 0 } })
      expect(rowOf(made.stdout)).toBeGreaterThan(rowOf(readFileSync(join(whole, 'manifest.json'), 'utf8')))
    })
  })

  describe('where the recordings survived', () => {
    beforeAll(async () => {
      rmSync(dataFolder, { recursive: true })
      mkdirSync(dataFolder, { mode: 0o700 })
      cpSync(survived, join(dataFolder, 'recordings'), { recursive: true })
      const done = await cli('restore', small)
      expect(done).toMatchObject({ code: 0, stderr: '' })
      again = await restart()
    }, 300_000)

    test('those that are newer than the backup are found, and known again', SLOW, async () => {
      const found = eventsIn(again!.log()).filter(({ event }) => event === 'recording.found')
      expect(found).toMatchObject([{ session: later.id, user: 'ops1', digest: later.recording?.digest }])
      expect(await byId(again!, later.id)).toMatchObject({
        result: 'lost',
        user: 'ops1',
        device: 'srv1',
        recording: later.recording!,
      })
      const output = streamOf(await framesOf(again!, later.id), 'output').toString()
      expect(output).toBe('newer than the backup\n')
    })

    test('those that ran have all that was recorded', SLOW, async () => {
      const outputs = await Promise.all(
        running.map(async ({ id }) => streamOf(await framesOf(again!, id), 'output').toString()),
      )
      expect(outputs.some((output) => output.includes('andafter'))).toBe(true)
    })

    test('nothing is missing or unknown, for the bastion and for an outside auditor', SLOW, async () => {
      expect(await cli('recordings', 'verify')).toMatchObject({ code: 0, stderr: '' })
      expect(await cli('audit', 'verify')).toMatchObject({ code: 0, stderr: '' })
      const log = join(folder, 'audit.jsonl')
      const [key] = (await cli('audit', 'key')).stdout.split(' ')
      const { stdout } = await cli('audit', 'export')
      writeFileSync(log, stdout)
      const args = [VERIFIER, '--key', key!, '--audit', log, join(dataFolder, 'recordings')]
      const verified = await run(process.execPath, args)
      expect(verified).toMatchObject({ code: 0, stderr: '' })
      expect(existsSync(join(dataFolder, 'recordings', 'restoring'))).toBe(false)
    })

    test('a recording that goes after that is missed', SLOW, async () => {
      const place = filesBelow(join(dataFolder, 'recordings')).find(
        (file) => file.includes(later.id) && file.endsWith('session.rec'),
      )!
      rmSync(place)
      const verified = await cli('audit', 'verify')
      expect(verified.code).toBe(1)
      expect(verified.stdout).toContain(`session ${later.id}: missing_session`)
    })
  })
})
