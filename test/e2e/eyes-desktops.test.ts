/** Desktops that have to be watched, and an RDP client whose input is suspended: real viewers, real desktops. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { ADMIN_PASSWORD, callApi } from '../peers/broker.ts'
import { type LiveWatcher, watchLive } from '../peers/live.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { SHADOW_PEERS } from '../peers/rdp/shadow.ts'
import { RDP_VIEWER_PEERS, xfreerdp } from '../peers/rdp/viewers.ts'
import { SCREEN_PEERS, type Screen, shows, startScreen } from '../peers/screen.ts'
import type { Viewer } from '../peers/viewer.ts'
import { XVNC_PEERS } from '../peers/vnc/servers.ts'
import { TIGER_VIEWER_PEERS, tigerViewer } from '../peers/vnc/viewers.ts'
import { until } from '../until.ts'
import type { SessionRow } from './bastion.ts'
import { addDesktop } from './desktop-targets.ts'
import { type Desktop, startDesktop } from './desktops.ts'
import { type ShadowTarget, startShadowTarget } from './rdp-desktops.ts'
import { textOf } from './shown-text.ts'

const [WIDTH, HEIGHT] = [320, 240]
const RDP_SIZE = { width: 800, height: 600 }
/** The viewer's window, for xdotool. */
const TIGER = ['search', '--onlyvisible', '--name', 'TigerVNC', 'windowfocus']
const BEGINS = 'begins when somebody watches it'
const PEERS = [
  ...[...XVNC_PEERS, ...TIGER_VIEWER_PEERS, ...RDP_VIEWER_PEERS, ...SHADOW_PEERS, ...SCREEN_PEERS],
  'xdotool' as const,
]

describeWithPeers('another pair of eyes on a desktop', PEERS, () => {
  let desktop: Desktop
  let screen: Screen
  let shadow: ShadowTarget
  let rdpLogin: string
  let cookie: string
  const viewers: Viewer[] = []
  const watchers: LiveWatcher[] = []

  beforeAll(async () => {
    desktop = await startDesktop({ target: { width: WIDTH, height: HEIGHT }, broker: { rdp: {} } })
    const { must, dataFolder, ports } = desktop.broker
    shadow = await startShadowTarget('tls', RDP_SIZE)
    const { port, account, password } = shadow
    const added = await addDesktop(desktop.broker, {
      ...{ name: 'win1', protocol: 'RDP', port, account, password },
      subprotocols: ['RDP'],
      policy: { logon_wait: 0 },
    })
    rdpLogin = added.login
    for (const { id } of await must<{ id: string }[]>('GET', '/authorizations'))
      await must('PUT', `/authorizations/${id}`, { four_eyes: true })
    const ca = readFileSync(join(dataFolder, 'tls', 'cert.pem'))
    const admin = { user: 'admin', password: ADMIN_PASSWORD }
    const signedIn = await callApi(ports.https, ca, 'POST', '/session', admin)
    cookie = [signedIn.headers['set-cookie'] ?? ''].flat()[0]!.split(';')[0]!
    screen = await startScreen(1100, 800)
  })
  afterAll(async () => {
    await desktop.stop()
    await shadow.stop()
    await screen.stop()
  })
  afterEach(async () => {
    for (const { socket } of watchers.splice(0)) socket.terminate()
    for (const viewer of viewers.splice(0)) await viewer.stop()
    await until('the end of all sessions', async () => (await current()).length === 0 || undefined)
  })

  const current = () => desktop.broker.must<SessionRow[]>('GET', '/sessions?status=current')
  const running = () => until('a session', async () => (await current())[0])
  const watch = async (id: string) => {
    const watcher = await watchLive(desktop.broker, id, { headers: { cookie } })
    watchers.push(watcher)
    return watcher
  }
  const xdotool = (display: string, ...args: string[]) =>
    run(findProgram('xdotool'), args, { env: { ...process.env, DISPLAY: display } })
  const reads = (words: string, scale: number) =>
    shows(screen.display, (picture) => textOf(picture, scale).includes(words))
  /** Returns where the pointer of the target is. */
  const pointer = async (display: string) =>
    /x:(\d+ y:\d+)/.exec((await xdotool(display, 'getmouselocation')).stdout)?.[1]
  /** Moves the viewer's pointer over all places where the picture may be, until that of the target has moved. */
  const moves = (display: string, focus: string[] = []) =>
    until('the pointer of the target', async () => {
      const before = await pointer(display)
      const [x, y] = [WIDTH, HEIGHT].map((size) => String(Math.floor(Math.random() * 2 * size)))
      await xdotool(screen.display, ...focus, 'mousemove', x!, y!)
      return (await pointer(display)) === before ? undefined : true
    })
  const rdp = async () => {
    const { broker, password } = desktop
    const client = { port: broker.ports.rdp!, user: rdpLogin, password }
    viewers.push(await xfreerdp(screen, client, [], RDP_SIZE))
  }

  test('a VNC viewer reads that its session waits for a watcher, and has the desktop with one', async () => {
    const { port, login: user, password, xvnc } = desktop
    viewers.push(await tigerViewer(screen, { port, user, password, types: ['TLSPlain'] }))
    await reads(BEGINS, 2)
    const { id } = await running()
    const first = await watch(id)
    await moves(xvnc!.display, TIGER)
    first.socket.terminate()
    const held = async () => (await desktop.broker.must<SessionRow>('GET', `/sessions/${id}`)).suspended
    await until('the hold', async () => ((await held()) ? true : undefined))
    await watch(id)
    await until('the resumption', async () => ((await held()) ? undefined : true))
    await moves(xvnc!.display, TIGER)
  })

  test('an RDP client waits for a watcher; held input stays away, the screen says why, and it is resumed', async () => {
    await rdp()
    await reads(BEGINS, 1)
    const { id } = await running()
    await watch(id)
    await moves(shadow.display)
    await desktop.broker.must('POST', `/sessions/${id}/suspend`, { reason: 'the change is being checked' })
    await reads('the change is being checked', 1)
    const before = await pointer(shadow.display)
    await xdotool(screen.display, 'mousemove', '333', '222')
    await desktop.broker.must('POST', `/sessions/${id}/resume`)
    await reads('accepted again', 1)
    expect(await pointer(shadow.display)).toBe(before)
    await moves(shadow.display)
  })
})
