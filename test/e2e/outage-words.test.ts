/** Words for clients of every protocol that come while the disk is full, or the database is away. */
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { mountSmall } from '../mount-small.ts'
import { probe } from '../peers/broker.ts'
import { sftp, ssh } from '../peers/openssh.ts'
import { type Postgres, startPostgres } from '../peers/postgres.ts'
import { describeWithPeers } from '../peers/program.ts'
import { RDP_VIEWER_PEERS, xfreerdp } from '../peers/rdp/viewers.ts'
import { SCREEN_PEERS, type Screen, shows, startScreen } from '../peers/screen.ts'
import type { Viewer } from '../peers/viewer.ts'
import { TIGER_VIEWER_PEERS, tigerViewer } from '../peers/vnc/viewers.ts'
import { until } from '../until.ts'
import { type Bastion, startBastion } from './bastion.ts'
import { addDesktop } from './desktop-targets.ts'
import { textOf } from './shown-text.ts'
import { RLOGIN_CLIENTS, startClient, TELNET_CLIENTS, type TerminalClientKind } from './terminal-clients.ts'

const AWAY = 'the bastion cannot reach its database, try again in a moment'
const FULL =
  'the disk is full, and the session cannot be recorded, so it is not opened: tell an administrator'
const STORE_FULL = 'the disk of the database is full, tell an administrator'
/** The words on a desktop are wrapped. */
const BEGIN = 'cannot reach its database'
const FULL_BEGIN = 'the disk is full'
const STORE_FULL_BEGIN = 'the disk of the database is full'
/** The target for desktops, at which nothing listens: the session is refused before. */
const NOWHERE = { port: 1, account: 'screen', password: 'of no desktop' }
const FLOOR = '256KiB'

const PEERS = [
  ...['sshd', 'ssh', 'initdb', 'postgres', 'inetutils-telnet', 'rsh-redone-rlogin', 'python3', 'curl'],
  ...[...RDP_VIEWER_PEERS, ...SCREEN_PEERS, ...TIGER_VIEWER_PEERS],
] as Parameters<typeof describeWithPeers>[1]

const disk = mountSmall('4m')
const dataDisk = mountSmall('64m')

function fill(folder: string): void {
  const { bavail, bsize } = statfsSync(folder)
  writeFileSync(join(folder, 'filler'), Buffer.alloc(bavail * bsize))
}

describeWithPeers('a client that comes', PEERS, () => {
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
    const config = {
      database: { url: server.url('words') },
      ...(disk.path && { recordings: { dir: join(disk.path, 'recordings'), min_free: FLOOR } }),
    }
    bastion = await startBastion({
      credential: 'password',
      broker: { dataFolder, config, terminals: {}, vnc: {}, rdp: {} },
    })
    screen = await startScreen(1100, 800)
  })
  afterEach(async () => {
    for (const viewer of viewers.splice(0)) await viewer.stop()
  })
  afterAll(async () => {
    await screen.stop()
    await bastion.stop()
    await server.start()
    await server.stop()
    rmSync(dataFolder, { recursive: true, force: true })
    disk.release()
    dataDisk.release()
  })

  /** Signs in by a terminal that sends the login. Returns what it shows, up to these words. */
  async function byTerminal(kind: TerminalClientKind, words: string): Promise<string> {
    const terminal = startClient(kind, bastion.broker.ports, bastion.login().user)
    try {
      await terminal.expect('Password: ')
      terminal.send(`${bastion.password}\r`)
      return await terminal.expect(`sallyport: ${words}`)
    } finally {
      await terminal.close()
    }
  }
  const told = () => bastion.login({ options: ['LogLevel=INFO'] })
  const byViewer = (user: string) =>
    kept(
      tigerViewer(screen, {
        port: bastion.broker.ports.vnc!,
        user,
        password: bastion.password,
        types: ['TLSPlain'],
      }),
    )
  const byRdp = (user: string) =>
    kept(xfreerdp(screen, { port: bastion.broker.ports.rdp!, user, password: bastion.password }))
  const reads = async (words: string, scale: number) =>
    textOf(await shows(screen.display, (picture) => textOf(picture, scale).includes(words)), scale)

  const AT_TEXT: [string, (words: string) => Promise<string>][] = [
    ['ssh', async () => (await ssh(bastion.home, told(), ['true'])).stderr],
    ['sftp', async () => (await sftp(bastion.home, told(), ['pwd'])).stderr],
    ['telnet', (words) => byTerminal(TELNET_CLIENTS[0]!, words)],
    ['rlogin', (words) => byTerminal(RLOGIN_CLIENTS[0]!, words)],
  ]

  /** Sign-ins end with these words; `begin` is what no line break parts. */
  function refusesSignIns(words: string, begin: string): void {
    test.each(AT_TEXT)('reads why: %s', async (_, come) => {
      expect(await come(words)).toContain(words)
    })

    test('reads why: a VNC viewer', async () => {
      const viewer = await byViewer(bastion.login().user)
      await viewer.ended
      expect(viewer.log()).toContain(begin)
    })

    test('reads why: an RDP client', async () => {
      await byRdp(bastion.login().user)
      await reads(begin, 1)
    })
  }

  describe.skipIf(disk.path === undefined)(`while the disk is full${disk.why}`, () => {
    beforeAll(async () => {
      const { broker } = bastion
      await broker.must('POST', '/usergroups', { group_name: 'people', users: ['ops1'] })
      for (const [name, protocol] of [
        ['desk1', 'VNC'],
        ['win1', 'RDP'],
      ] as const)
        await addDesktop(broker, { ...NOWHERE, name, protocol, subprotocols: [protocol] })
      fill(disk.path!)
    })

    test.each(AT_TEXT)('reads why: %s', async (_, come) => {
      expect(await come(FULL)).toContain(`sallyport: ${FULL}`)
    })

    test('reads why: a VNC viewer', async () => {
      await byViewer('ops1+screen@desk1')
      await reads(FULL_BEGIN, 2)
    })

    test('reads why: an RDP client', async () => {
      await byRdp('ops1+screen@win1')
      await reads(FULL_BEGIN, 1)
    })

    test('leaves no session, and a refusal with the sizes for the administrator', async () => {
      expect(await bastion.closedSessions()).toEqual([])
      const denied = await bastion.events('session.denied', AT_TEXT.length + 2)
      const protocols = denied.map(({ protocol }) => protocol)
      expect(protocols).toEqual([...AT_TEXT.map(() => 'SSH'), 'VNC', 'RDP'])
      for (const { reason } of denied) expect(reason).toContain('expected 262144 bytes free for recordings')
    })
  })

  describe('while the database is away', () => {
    beforeAll(async () => {
      await server.kill()
      await until('the outage', () => bastion.broker.log().includes('"the database cannot be used"'))
    })

    refusesSignIns(AWAY, BEGIN)

    test('leaves a log that tells of the outage once', () => {
      const said = bastion.broker
        .log()
        .split('\n')
        .filter((line) => line.includes('the search index could not'))
      expect(said.length).toBeLessThan(2)
    })

    test('asks as a balancer learns that the broker is alive, and what it lacks', async () => {
      expect(await probe(bastion.broker, '/healthz')).toBe('{"status":"ok"}200')
      const lacks = JSON.stringify(['database', ...(disk.path === undefined ? [] : ['recordings'])])
      const answer = `{"status":"not_ready","obstacles":${lacks}}503`
      // The volume is looked at every ten seconds.
      await until(answer, async () => (await probe(bastion.broker, '/readyz')) === answer)
    })

    test('signs in at the API gets 503 and when to come again', async () => {
      expect(await bastion.broker.api('GET', '/users')).toMatchObject({
        status: 503,
        headers: { 'retry-after': '5' },
      })
    })
  })

  describe.skipIf(dataDisk.path === undefined)(`while the disk of SQLite is full${dataDisk.why}`, () => {
    beforeAll(async () => {
      await bastion.stop()
      const config = { recordings: { dir: join(dataFolder, 'recordings') } }
      const broker = { dataFolder: join(dataDisk.path!, 'data'), config, terminals: {}, vnc: {}, rdp: {} }
      bastion = await startBastion({ credential: 'password', broker })
      // The API signs in before.
      await bastion.broker.must('GET', '/users')
      fill(dataDisk.path!)
    })

    refusesSignIns(STORE_FULL, STORE_FULL_BEGIN)

    test('reads why: at the API', async () => {
      expect(await bastion.broker.api('POST', '/usergroups', { group_name: 'more' })).toMatchObject({
        status: 503,
        body: { error: 'audit_unavailable', details: [{ message: STORE_FULL }] },
      })
    })
  })
})
