/**
 * The database goes away while sessions run: they go on, their events are kept, and what is new is refused. Each
 * command over the shared connection is done only when its event is recorded.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { ControlClient } from '../../src/control/client.ts'
import { type Broker, startBroker } from '../peers/broker.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { type Postgres, startPostgres } from '../peers/postgres.ts'
import { describeWithPeers } from '../peers/program.ts'
import type { Terminal } from '../peers/terminal.ts'
import { until } from '../until.ts'
import { bareTelnet, hangUp } from './bare-telnet.ts'
import { type Bastion, eventsIn, type SessionRow, startBastion } from './bastion.ts'
import { sallyport } from './recorded.ts'

const SLOW = { timeout: 300_000 }
/** The time-out of a statement, for which a refusal must not wait. */
const STATEMENT_MS = 30_000
const AWAY = 'the bastion cannot reach its database, try again in a moment'

let server: Postgres
let count = 0
let dataFolder: string
let bastion: Bastion
let config: Record<string, unknown>
const opened: Terminal[] = []

/** Starts a bastion on a database of its own. */
async function start(database: object = {}, authorization?: Record<string, unknown>): Promise<void> {
  const name = `outage${count++}`
  await server.sql(`create database ${name} template template0`)
  dataFolder = mkdtempSync(join(tmpdir(), 'sallyport-outage-'))
  config = { database: { url: server.url(name), ...database } }
  bastion = await startBastion({
    credential: 'password',
    broker: { dataFolder, config, terminals: {} },
    ...(authorization && { authorization }),
  })
}

/** Opens a connection that commands share, and a terminal in it. */
async function shared(): Promise<Terminal> {
  const control = [`ControlPath=${join(bastion.home.folder, 'm')}`, 'ControlMaster=auto']
  const terminal = sshTerminal(bastion.home, bastion.login({ options: control }), [
    'stty -echo; echo begun; while read -r a; do echo "<$a>"; done',
  ])
  opened.push(terminal)
  await terminal.expect('begun')
  return terminal
}

/** Runs a command in the shared connection. */
const inside = (text: string) =>
  ssh(bastion.home, bastion.login({ options: [`ControlPath=${join(bastion.home.folder, 'm')}`] }), [
    `echo ${text}`,
  ])

/** Signs in anew; shows what the bastion says before the sign-in. */
const anew = (text: string) =>
  ssh(bastion.home, bastion.login({ options: ['LogLevel=INFO'] }), [`echo ${text}`])

async function typed(terminal: Terminal, text: string): Promise<void> {
  terminal.send(`${text}\r`)
  await terminal.expect(`<${text}>`)
}

const isAway = () =>
  until(
    'the end of the database',
    () => bastion.broker.log().includes('the database cannot be used') || undefined,
  )
const isBack = (times = 1) => bastion.events('database.back', times)
/** Returns the number of running sessions, as a broker tells without its database. */
async function running(): Promise<number> {
  const control = await ControlClient.connect(join(dataFolder, 'control.sock'))
  try {
    return (await control!.status()).sessions
  } finally {
    control!.destroy()
  }
}

const journals = () => readdirSync(join(dataFolder, 'journal')).filter((name) => name.endsWith('.journal'))

/** The commands whose events are in the chain, in its order. */
const commandsOf = (broker: Broker) =>
  eventsIn(broker.log())
    .filter(({ event, object }) => event === 'command' && String(object).startsWith('echo '))
    .map(({ object }) => String(object))

describeWithPeers('while the database is away', ['sshd', 'ssh', 'initdb', 'postgres'], () => {
  beforeAll(async () => {
    server = await startPostgres()
  }, SLOW.timeout)
  afterAll(async () => await server.stop(), SLOW.timeout)
  afterEach(async () => {
    hangUp()
    server.thaw()
    for (const terminal of opened.splice(0)) await terminal.close()
    await bastion.stop()
    rmSync(dataFolder, { recursive: true, force: true })
  }, SLOW.timeout)

  test('a session goes on, its events are kept once, and what is new is refused in time', SLOW, async () => {
    await start()
    const terminal = await shared()
    expect(await inside('before')).toMatchObject({ code: 0, stdout: 'before\n' })
    server.freeze()
    const begun = performance.now()
    const [late, first] = await Promise.all([anew('late'), inside('first'), typed(terminal, 'one')])
    expect(performance.now() - begun).toBeLessThan(STATEMENT_MS)
    expect(late).toMatchObject({ code: 255, stdout: '' })
    expect(late.stderr).toContain(AWAY)
    expect(first).toMatchObject({ code: 0, stdout: 'first\n' })
    const asked = performance.now()
    const refused = await anew('later')
    expect(refused.stderr).toContain(AWAY)
    const telnet = await bareTelnet({ port: bastion.broker.ports.telnet! })
    await telnet.sees('login: ')
    telnet.type('ops1\r')
    await telnet.sees('Password: ')
    telnet.type('ops1 password\r')
    await telnet.sees(`sallyport: ${AWAY}`)
    await telnet.closed()
    const answer = await bastion.broker.api('GET', '/users')
    expect(answer).toMatchObject({
      status: 503,
      headers: { 'retry-after': '5' },
      body: { error: 'store_unavailable' },
    })
    expect(performance.now() - asked).toBeLessThan(STATEMENT_MS)
    expect(await inside('second')).toMatchObject({ code: 0, stdout: 'second\n' })
    expect(journals()).toHaveLength(1)
    server.thaw()
    const [back] = await isBack()
    expect(back).toMatchObject({ count: expect.any(Number), duration: expect.any(Number) })
    expect(await inside('after')).toMatchObject({ code: 0 })
    expect(await ssh(bastion.home, bastion.login(), ['echo new'])).toMatchObject({ stdout: 'new\n' })
    await typed(terminal, 'two')
    await until('the last event', () => commandsOf(bastion.broker).includes('echo new') || undefined)
    const kept = ['before', 'first', 'second', 'after', 'new']
    expect(commandsOf(bastion.broker)).toEqual(kept.map((text) => `echo ${text}`))
    expect(journals()).toEqual([])
    expect((await sallyport(bastion.broker, ['audit', 'verify'])).stdout).toMatch(/^ok: \d+ rows/)
  })

  test('a server that is killed and starts again: nothing is lost', SLOW, async () => {
    await start()
    const terminal = await shared()
    await inside('a0')
    for (const round of [1, 2]) {
      await server.kill()
      await typed(terminal, `killed ${round}`)
      await inside(`a${round}`)
      await server.start()
      await isBack(round)
    }
    await inside('a3')
    await until('its event', () => commandsOf(bastion.broker).includes('echo a3') || undefined)
    expect(commandsOf(bastion.broker)).toEqual(['echo a0', 'echo a1', 'echo a2', 'echo a3'])
    expect((await sallyport(bastion.broker, ['audit', 'verify'])).stdout).toMatch(/^ok: \d+ rows/)
  })

  test('after the grace sessions end in words, sealed and accounted for', SLOW, async () => {
    await start({ grace: '3s' })
    const { broker } = bastion
    const terminal = await shared()
    await typed(terminal, 'x')
    server.freeze()
    await terminal.expect('the database of the audit log has been unreachable for 3 s', 20_000)
    expect(await terminal.exit()).toBe(255)
    server.thaw()
    const [closed] = await bastion.events('session.close', 1)
    expect(closed).toMatchObject({ result: 'killed', reason: expect.stringContaining('for 3 s') })
    expect((await bastion.events('database.back', 1))[0]).toMatchObject({ duration: expect.any(Number) })
    const [row] = await bastion.closedSessions(1)
    expect(row).toMatchObject({ result: 'killed', recording: { state: 'sealed' } })
    expect((await sallyport(broker, ['recordings', 'verify'])).stdout).toMatch(/^(\S+ {2}ok, sealed.*\n)+$/)
  })

  test('a strict session ends at once', SLOW, async () => {
    await start({}, { recording_mode: 'strict' })
    const terminal = await shared()
    server.freeze()
    await terminal.expect('and this session is recorded strictly', 10_000)
    expect(await terminal.exit()).toBe(255)
    server.thaw()
    await isBack()
    expect(await bastion.closedSessions(1)).toMatchObject([{ result: 'killed' }])
  })

  test('sessions of a replaced broker that dies meanwhile are closed later, once', SLOW, async () => {
    await start()
    const terminal = await shared()
    await inside('before')
    const [{ id }] = await bastion.broker.must<[SessionRow]>('GET', '/sessions?status=current')
    const newer = await startBroker({
      dataFolder,
      ports: bastion.broker.ports,
      config,
      flags: ['--takeover'],
    })
    try {
      await server.kill()
      await until('both know', () => newer.log().includes('the database cannot be used') || undefined)
      await isAway()
      expect(await inside('journaled')).toMatchObject({ stdout: 'journaled\n' })
      await bastion.broker.kill()
      await terminal.exit()
      await server.start()
      await until('the database', () => newer.log().includes('the database is back') || undefined)
      const closed = await until('the end of the session', async () => {
        const row = await newer.must<SessionRow>('GET', `/sessions/${id}`)
        return row.result ? row : undefined
      })
      expect(closed).toMatchObject({ result: 'lost', recording: { state: 'recovered' } })
      const ends = () => eventsIn(newer.log()).filter(({ event }) => event === 'session.close')
      await until('its event', () => ends().length > 0 || undefined)
      expect(ends()).toHaveLength(1)
      expect(commandsOf(newer).filter((text) => text === 'echo journaled')).toHaveLength(1)
    } finally {
      await newer.stop()
    }
  })

  test('a broker that is killed meanwhile stores the events at its next start, once', SLOW, async () => {
    await start({ grace: '8s' })
    const terminal = await shared()
    await inside('kept')
    await server.kill()
    await isAway()
    expect(await inside('journaled')).toMatchObject({ stdout: 'journaled\n' })
    await terminal.expect('has been unreachable for 8 s', 40_000)
    await terminal.exit()
    await until('the end of the session', async () => ((await running()) === 0 ? true : undefined))
    const { ports } = bastion.broker
    await bastion.broker.kill()
    const refused = startBroker({ dataFolder, config })
    await expect(refused).rejects.toThrow(/postgres:.*the database cannot be used/)
    await server.start()
    const broker = await startBroker({ dataFolder, ports, config })
    try {
      expect(journals()).toEqual([])
      await until('the event', () => commandsOf(broker).includes('echo journaled') || undefined)
      expect(commandsOf(broker).filter((text) => text === 'echo journaled')).toHaveLength(1)
      const rows = await broker.must<SessionRow[]>('GET', '/sessions?limit=-1')
      expect(rows).toMatchObject([{ result: 'killed', recording: { state: 'sealed' } }])
      expect(eventsIn(broker.log()).filter(({ event }) => event === 'session.close')).toHaveLength(1)
      expect((await sallyport(broker, ['audit', 'verify'])).stdout).toMatch(/^ok: \d+ rows/)
    } finally {
      await broker.stop()
    }
  })
})
