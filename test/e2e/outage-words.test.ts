/** Words for clients of every protocol that come while the database is away. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { probe } from '../peers/broker.ts'
import { ssh } from '../peers/openssh.ts'
import { type Postgres, startPostgres } from '../peers/postgres.ts'
import { describeWithPeers } from '../peers/program.ts'
import { RDP_VIEWER_PEERS, xfreerdp } from '../peers/rdp/viewers.ts'
import { SCREEN_PEERS, type Screen, shows, startScreen } from '../peers/screen.ts'
import type { Viewer } from '../peers/viewer.ts'
import { TIGER_VIEWER_PEERS, tigerViewer } from '../peers/vnc/viewers.ts'
import { until } from '../until.ts'
import { type Bastion, startBastion } from './bastion.ts'
import { textOf } from './shown-text.ts'
import { RLOGIN_CLIENTS, startClient, TELNET_CLIENTS, type TerminalClientKind } from './terminal-clients.ts'

const SLOW = { timeout: 300_000 }
const AWAY = 'the bastion cannot reach its database, try again in a moment'
const WAIT_MS = 30_000
/** The words on a desktop are wrapped. */
const BEGIN = 'cannot reach its database'

const PEERS = [
  ...['sshd', 'ssh', 'initdb', 'postgres', 'inetutils-telnet', 'rsh-redone-rlogin', 'python3', 'curl'],
  ...[...RDP_VIEWER_PEERS, ...SCREEN_PEERS, ...TIGER_VIEWER_PEERS],
] as Parameters<typeof describeWithPeers>[1]

describeWithPeers('who comes while the database is away', PEERS, () => {
  let server: Postgres
  let bastion: Bastion
  let dataFolder: string
  let screen: Screen
  const viewers: Viewer[] = []
  const kept = async (viewer: Promise<Viewer>) => {
    viewers.push(await viewer)
    return await viewer
  }

  beforeAll(async () => {
    server = await startPostgres()
    await server.sql('create database words template template0')
    dataFolder = mkdtempSync(join(tmpdir(), 'sallyport-words-'))
    const config = { database: { url: server.url('words') } }
    bastion = await startBastion({
      credential: 'password',
      broker: { dataFolder, config, terminals: {}, vnc: {}, rdp: {} },
    })
    screen = await startScreen()
    await server.kill()
    await until(
      'the outage',
      () => bastion.broker.log().includes('"the database cannot be used"') || undefined,
    )
  }, SLOW.timeout)
  afterAll(async () => {
    for (const viewer of viewers) await viewer.stop()
    await screen.stop()
    await bastion.stop()
    await server.start()
    await server.stop()
    rmSync(dataFolder, { recursive: true, force: true })
  }, SLOW.timeout)

  /** Signs in by a terminal that sends the login. Returns what it shows. */
  async function byTerminal(kind: TerminalClientKind): Promise<string> {
    const terminal = startClient(kind, bastion.broker.ports, bastion.login().user)
    try {
      await terminal.expect('Password: ')
      terminal.send(`${bastion.password}\r`)
      return await terminal.expect(`sallyport: ${AWAY}`, WAIT_MS)
    } finally {
      await terminal.close()
    }
  }

  const COMERS: Record<string, () => Promise<string>> = {
    ssh: async () =>
      (await ssh(bastion.home, bastion.login({ options: ['LogLevel=INFO'] }), ['true'])).stderr,
    telnet: () => byTerminal(TELNET_CLIENTS[0]!),
    rlogin: () => byTerminal(RLOGIN_CLIENTS[0]!),
    'a VNC viewer': async () => {
      const { user, password } = bastion.login()
      const port = bastion.broker.ports.vnc!
      const viewer = await kept(tigerViewer(screen, { port, user, password: password!, types: ['TLSPlain'] }))
      await viewer.ended
      return viewer.log()
    },
    'an RDP client': async () => {
      const { user, password } = bastion.login()
      await kept(xfreerdp(screen, { port: bastion.broker.ports.rdp!, user, password: password! }))
      const seen = await shows(screen.display, (picture) => textOf(picture).includes(BEGIN), WAIT_MS)
      return textOf(seen)
    },
  }

  test.each(Object.entries(COMERS))('reads why: %s', SLOW, async (_, come) => {
    expect(await come()).toContain(BEGIN)
  })

  test('leaves a log that tells of the outage once', () => {
    const said = bastion.broker
      .log()
      .split('\n')
      .filter((line) => line.includes('the search index could not'))
    expect(said.length).toBeLessThan(2)
  })

  test('asks as a balancer learns that the broker is alive, and what it lacks', async () => {
    expect(await probe(bastion.broker, '/healthz')).toBe('{"status":"ok"}200')
    expect(await probe(bastion.broker, '/readyz')).toBe('{"status":"not_ready","obstacles":["database"]}503')
  })

  test('signs in at the API gets 503 and when to come again', async () => {
    expect(await bastion.broker.api('GET', '/users')).toMatchObject({
      status: 503,
      headers: { 'retry-after': '5' },
    })
  })
})
