/** The drill on PostgreSQL: a backup beside a broker with a session, and a restore into another database and folder. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { ADMIN_PASSWORD, type Broker, callApi, startBroker } from '../peers/broker.ts'
import { type TestDatabase, testDatabase } from '../peers/databases.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { type Bastion, type SessionRow, startBastion } from './bastion.ts'
import { framesOf, sallyport, streamOf } from './recorded.ts'

/** On a busy machine each program takes seconds. */
const SLOW = { timeout: 300_000 }

describeWithPeers('a broker on PostgreSQL', ['initdb', 'postgres', 'sshd', 'ssh'], () => {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-drill-'))
  const dataFolder = join(folder, 'data')
  const restored = join(folder, 'restored')
  const backup = join(folder, 'backup')
  const configFile = join(folder, 'restored.yaml')
  const config = { master_key: { file: join(folder, 'elsewhere', 'master.key') } }
  let first: TestDatabase
  let second: TestDatabase
  let bastion: Bastion
  let again: Broker | undefined
  let cookie: string

  /** Asks with the cookie of before the backup. */
  const asBefore = (broker: Broker) => {
    const certificate = readFileSync(join(broker.dataFolder, 'tls', 'cert.pem'))
    return callApi(broker.ports.https, certificate, 'GET', '/sessions?limit=1', undefined, { cookie })
  }

  beforeAll(async () => {
    mkdirSync(join(folder, 'elsewhere'), { mode: 0o700 })
    first = await testDatabase({ isEmpty: true })
    second = await testDatabase({ isEmpty: true })
    bastion = await startBastion({
      broker: { dataFolder, config: { ...config, database: { url: first.url } } },
    })
    writeFileSync(configFile, stringify({ data_dir: restored, database: { url: second.url }, ...config }))
    const certificate = readFileSync(join(dataFolder, 'tls', 'cert.pem'))
    const signedIn = await callApi(bastion.broker.ports.https, certificate, 'POST', '/session', {
      user: 'admin',
      password: ADMIN_PASSWORD,
    })
    cookie = [signedIn.headers['set-cookie'] ?? []].flat()[0]?.split(';')[0] ?? ''
  }, 300_000)

  afterAll(async () => {
    await again?.stop()
    await bastion.stop()
    await Promise.all([first.drop(), second.drop()])
    rmSync(folder, { recursive: true, force: true })
  })

  test('is backed up and verified while a session runs, which does not notice', SLOW, async () => {
    const terminal = sshTerminal(bastion.home, bastion.login())
    await terminal.expect(/[$#] /)
    terminal.send('echo be"fore"\r')
    await terminal.expect('before')
    const made = await sallyport(bastion.broker, ['backup', backup, '--recordings', '--json'])
    expect(made).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(made.stdout)).toMatchObject({ sessions: { all: 1, running: 1 } })
    const verified = await sallyport(bastion.broker, ['audit', 'verify'])
    expect(verified).toMatchObject({ code: 0, stderr: '' })
    expect(verified.stdout).toMatch(/^ok: \d+ rows, /)
    terminal.send('echo af"ter"; exit\r')
    await terminal.expect('after')
    await terminal.exit()
    expect(await asBefore(bastion.broker)).toMatchObject({ status: 200 })
  })

  test('is restored into another database and folder, and starts there', SLOW, async () => {
    const told = await sallyport({ configFile }, ['restore', backup])
    expect(told).toMatchObject({ code: 0, stderr: '' })
    expect(told.stdout).toContain(`${second.place.database} and ${restored} are as they were at `)
    again = await startBroker({ dataFolder: restored, config: { ...config, database: { url: second.url } } })
    expect(await asBefore(again)).toMatchObject({ status: 401 })
    const done = await ssh(bastion.home, bastion.login({ port: again.ports.ssh }), ['echo here'])
    expect(done).toMatchObject({ code: 0, stdout: 'here\n' })
    const rows = await again.must<SessionRow[]>('GET', '/sessions?limit=-1&sort=begin')
    expect(rows).toMatchObject([{ user: 'ops1', result: 'lost' }, { user: 'ops1' }])
    expect(streamOf(await framesOf(again, rows[0]!.id), 'output').toString()).toContain('before')
  })

  test('has its log in order there, with the restore in it', SLOW, async () => {
    for (const command of [['audit', 'verify'], ['check'], ['recordings', 'verify']])
      expect(await sallyport(again!, command)).toMatchObject({ code: 0, stderr: '' })
    const exported = await sallyport(again!, ['audit', 'export'])
    const events = exported.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, at) => at + 1))
    expect(events.find(({ code }) => code === 'backup.restore').fields).toMatchObject({ object: backup })
  })

  test('is not restored over, and a changed log is named by its row', SLOW, async () => {
    const refused = await sallyport({ configFile }, ['restore', backup])
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toContain(`in use by process ${again!.pid}`)
    await second.sql(`update audit set json = replace(json, 'ops1', 'ops2') where sequence =
      (select min(sequence) from audit where json like '%ops1%')`)
    const verified = await sallyport(again!, ['audit', 'verify'])
    expect(verified.code).toBe(1)
    expect(verified.stdout).toMatch(/^row \d+: changed_event: /)
  })
})
