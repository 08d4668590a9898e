/**
 * Faults of a database that is not gone: it turns read-only, its standby is lost, its disk is full, or that of the
 * journal is. Each command over the shared connection is done only when its event is recorded.
 */
import {
  chownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { mountSmall } from '../mount-small.ts'
import { startBroker } from '../peers/broker.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { type Postgres, startPostgres } from '../peers/postgres.ts'
import { describeWithPeers } from '../peers/program.ts'
import type { Terminal } from '../peers/terminal.ts'
import { until } from '../until.ts'
import { type Bastion, startBastion } from './bastion.ts'
import { sallyport } from './recorded.ts'

const SLOW = { timeout: 300_000 }
const DATABASE = 'faults'
const AWAY = 'the bastion cannot reach its database, try again in a moment'
const FULL = 'the disk of the database is full, tell an administrator'
/** A statement's time-out, for which no refusal waits. */
const STATEMENT_MS = 30_000
const WAIT_MS = 30_000

/** Takes all room of a volume; returns what gives it back. */
function fill(folder: string): () => void {
  const file = join(folder, 'filler')
  const { bavail, bsize } = statfsSync(folder)
  writeFileSync(file, Buffer.alloc(bavail * bsize))
  return () => rmSync(file)
}

const journalDisk = mountSmall('1m')
const serverDisk = mountSmall('64m')

describeWithPeers('a database with a fault', ['sshd', 'ssh', 'initdb', 'postgres', 'pg_basebackup'], () => {
  let server: Postgres
  let bastion: Bastion
  let dataFolder: string
  let config: Record<string, unknown>
  let terminal: Terminal
  const acknowledged: string[] = []
  let made = 0

  const options = () => [`ControlPath=${join(bastion.home.folder, 'm')}`]
  /** Opens a connection that commands share. */
  async function open(): Promise<void> {
    const login = bastion.login({ options: [...options(), 'ControlMaster=auto'] })
    terminal = sshTerminal(bastion.home, login, ['stty -echo; echo begun; cat'])
    await terminal.expect('begun')
  }
  async function runs(text: string): Promise<void> {
    const { stdout } = await ssh(bastion.home, bastion.login({ options: options() }), [`echo ${text}`])
    expect(stdout).toBe(`${text}\n`)
    acknowledged.push(`echo ${text}`)
  }
  const anew = (text: string) =>
    ssh(bastion.home, bastion.login({ options: ['LogLevel=INFO'] }), [`echo ${text}`])

  beforeAll(async () => {
    server = await startPostgres()
    await server.sql(`create database ${DATABASE} template template0`)
    dataFolder = mkdtempSync(join(tmpdir(), 'sallyport-faults-'))
    if (journalDisk.path !== undefined) symlinkSync(journalDisk.path, join(dataFolder, 'journal'))
    config = { database: { url: server.url(DATABASE) } }
    bastion = await startBastion({ credential: 'password', broker: { dataFolder, config } })
    await open()
  }, SLOW.timeout)
  afterAll(async () => {
    await terminal.close()
    await bastion.stop()
    await server.stop()
    for (const { release } of [journalDisk, serverDisk]) release()
    rmSync(dataFolder, { recursive: true, force: true })
  }, SLOW.timeout)
  afterEach(() => server.thaw())

  /** Expects a new session and a write to be refused in words, and in time. */
  async function refuses(text: string, words = AWAY): Promise<void> {
    const begun = performance.now()
    const device = { device_name: `refused${made++}`, host: '127.0.0.1' }
    const [refused, write] = await Promise.all([anew(text), bastion.broker.api('POST', '/devices', device)])
    expect(performance.now() - begun).toBeLessThan(STATEMENT_MS)
    expect(refused).toMatchObject({ code: 255, stdout: '' })
    expect(refused.stderr).toContain(words)
    expect(write).toMatchObject({ status: 503, headers: { 'retry-after': '5' } })
  }
  /** Nothing that was acknowledged is lost or there twice. */
  async function recovers(text: string): Promise<void> {
    await until('the database', async () => (await anew(text)).stdout === `${text}\n` || undefined, WAIT_MS)
    const commands = async () => {
      const rows = await server.sql(
        `select json from audit where code = 'command' and json like '%"echo %' order by sequence`,
        DATABASE,
      )
      return rows.map(({ json }) => String(JSON.parse(String(json)).fields.object))
    }
    acknowledged.push(`echo ${text}`)
    await until('the events', async () => (await commands()).includes(`echo ${text}`) || undefined)
    expect(await commands()).toEqual(acknowledged)
    const verified = await sallyport(bastion.broker, ['audit', 'verify'])
    expect(verified.stdout, verified.stderr).toMatch(/^ok: \d+ rows/)
  }

  const setting = async (name: string, value: string) => {
    await server.sql(`alter system set ${name} = ${value}`)
    await server.sql('select pg_reload_conf()')
  }
  const outages = () => bastion.broker.log().split('"the database cannot be used"').length - 1
  /** Waits for an outage after so many. */
  const isAway = (before: number) => until('the outage', () => outages() > before || undefined, WAIT_MS)

  test('that turns read-only', SLOW, async () => {
    const before = outages()
    await setting('default_transaction_read_only', 'on')
    await isAway(before)
    await runs('while-read-only')
    await refuses('refused')
    await setting('default_transaction_read_only', 'off')
    await recovers('after-read-only')
  })

  test('whose synchronous standby is lost, so that commits hang', SLOW, async () => {
    const standby = await server.standby()
    try {
      await setting('synchronous_standby_names', "'*'")
      await until('the standby', async () => {
        const rows = await server.sql("select 1 from pg_stat_replication where sync_state = 'sync'")
        return rows.length > 0 || undefined
      })
      await runs('with-standby')
      const before = outages()
      standby.freeze()
      await Promise.all([runs('standby-lost'), refuses('refused')])
      await isAway(before)
      await runs('without-standby')
      standby.thaw()
      await recovers('standby-back')
    } finally {
      await setting('synchronous_standby_names', "''")
      await standby.stop()
    }
  })

  test.skipIf(journalDisk.path === undefined)(
    `while the journal's disk is full${journalDisk.why}`,
    SLOW,
    async () => {
      const release = fill(journalDisk.path!)
      const before = outages()
      server.freeze()
      await isAway(before)
      const lost = await ssh(bastion.home, bastion.login({ options: options() }), ['echo unrecorded'])
      expect(lost.stdout).toBe('')
      expect(await terminal.exit()).toBe(255)
      expect(terminal.output()).toContain('the audit log cannot be written')
      const refused = await anew('refused')
      expect(refused.stderr).toContain(AWAY)
      release()
      server.thaw()
      await recovers('with-journal')
      await open()
      await runs('again')
      await recovers('at-last')
    },
  )

  test.skipIf(serverDisk.path === undefined)(`whose disk is full${serverDisk.why}`, SLOW, async () => {
    const folder = join(serverDisk.path!, 'tables')
    mkdirSync(folder)
    const { uid, gid } = statSync(server.folder)
    chownSync(folder, uid, gid)
    await server.sql(`create tablespace small location '${folder}'`)
    await terminal.close()
    const { ports } = bastion.broker
    await bastion.broker.kill()
    await server.sql(`alter database ${DATABASE} set tablespace small`)
    const broker = await startBroker({ dataFolder, ports, config })
    try {
      bastion = { ...bastion, broker }
      await open()
      await broker.must('GET', '/users')
      const release = fill(serverDisk.path!)
      const before = outages()
      let count = 0
      // A page of each table may have some room.
      while (outages() === before) await runs(`filling${count++}`)
      await runs('while-full')
      await refuses('refused', FULL)
      release()
      await recovers('with-room')
    } finally {
      await broker.stop()
    }
  })
})
