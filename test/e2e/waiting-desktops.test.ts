/** Viewers of desktops that type a reason and wait for an approval on the bastion's own screens. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { SHADOW_PEERS } from '../peers/rdp/shadow.ts'
import { RDP_VIEWER_PEERS, xfreerdp } from '../peers/rdp/viewers.ts'
import {
  isWithin,
  type Picture,
  paint,
  SCREEN_PEERS,
  type Screen,
  shows,
  startScreen,
} from '../peers/screen.ts'
import { endsBy, type Viewer } from '../peers/viewer.ts'
import { XVNC_PEERS } from '../peers/vnc/servers.ts'
import { TIGER_VIEWER_PEERS, tigerViewer } from '../peers/vnc/viewers.ts'
import { until } from '../until.ts'
import { APPROVAL, type Approvers, addApprovers } from './approvers.ts'
import { addDesktop } from './desktop-targets.ts'
import { type Desktop, startDesktop } from './desktops.ts'
import { type ShadowTarget, startShadowTarget } from './rdp-desktops.ts'
import { textOf } from './shown-text.ts'

const [WIDTH, HEIGHT] = [320, 240]
const RDP_SIZE = { width: 800, height: 600 }
const PEERS = [
  ...[...XVNC_PEERS, ...TIGER_VIEWER_PEERS, ...RDP_VIEWER_PEERS, ...SHADOW_PEERS, ...SCREEN_PEERS],
  'xdotool' as const,
]

function stripes(width: number, height: number): Picture {
  const rgb = Buffer.alloc(width * height * 3)
  for (let at = 0; at < width * height; at++)
    rgb.writeUIntBE(((at % width) >> 4) % 2 === 0 ? 0x204080 : 0xe0c040, at * 3, 3)
  return { width, height, rgb }
}

describeWithPeers('a desktop that needs an approval', PEERS, () => {
  let desktop: Desktop
  let approvers: Approvers
  let screen: Screen
  let shadow: ShadowTarget
  let rdpLogin: string
  const viewers: Viewer[] = []

  beforeAll(async () => {
    desktop = await startDesktop({
      target: { width: WIDTH, height: HEIGHT },
      broker: { rdp: {} },
    })
    const { broker } = desktop
    approvers = await addApprovers(broker)
    const [authorization] = await broker.must<{ id: string }[]>('GET', '/authorizations')
    await broker.must('PUT', `/authorizations/${authorization!.id}`, {
      ...APPROVAL,
      has_comment: true,
      mandatory_comment: true,
    })
    shadow = await startShadowTarget('tls', RDP_SIZE)
    const { port, account, password } = shadow
    const added = await addDesktop(broker, {
      ...{ name: 'win1', protocol: 'RDP', port, account, password },
      subprotocols: ['RDP', 'RDP_CLIPBOARD_UP', 'RDP_CLIPBOARD_DOWN', 'RDP_DRIVE', 'RDP_AUDIO_OUTPUT'],
      policy: { logon_wait: 0 },
      authorization: APPROVAL,
    })
    rdpLogin = added.login
    screen = await startScreen(1100, 800)
  })
  afterAll(async () => {
    await desktop.stop()
    await shadow.stop()
    await screen.stop()
  })
  afterEach(async () => {
    for (const viewer of viewers.splice(0)) await viewer.stop()
  })

  const keep = async (viewer: Promise<Viewer>) => {
    viewers.push(await viewer)
    return await viewer
  }
  const xdotool = (...args: string[]) =>
    run(findProgram('xdotool'), args, { env: { ...process.env, DISPLAY: screen.display } })
  const reads = (words: string, scale: number) =>
    shows(screen.display, (picture) => textOf(picture, scale).includes(words))
  const tiger = async () => {
    const { port, login: user, password } = desktop
    const viewer = await keep(tigerViewer(screen, { port, user, password, types: ['TLSPlain'] }))
    await until('the window', async () => {
      const found = await xdotool('search', '--onlyvisible', '--name', 'TigerVNC', 'windowfocus')
      return found.code === 0 || undefined
    })
    return viewer
  }

  test('a viewer types its reason, waits, and has the desktop', async () => {
    await tiger()
    await reads('Why do you open this session?', 2)
    await xdotool('key', 'Return', 'Return')
    await reads('the comment may not be empty', 2)
    await xdotool('type', '--delay', '20', 'disk full')
    await xdotool('key', 'Return', 'Return')
    await reads('Waiting for an approval', 2)
    const { id, comment } = await approvers.next()
    expect(comment).toBe('disk full')
    await approvers.answer(id, 'accept')
    const picture = stripes(WIDTH, HEIGHT)
    await paint(desktop.xvnc!.display, picture)
    await shows(screen.display, (shown) => isWithin(shown, picture))
    await viewers.splice(0)[0]!.stop()
    const [row] = await desktop.closedSessions(1)
    expect(row).toMatchObject({ user: 'ops1', result: 'success', approval: id })
  })

  test('a rejection is read on the screen; Escape withdraws the request', async () => {
    const type = async () => {
      await reads('Why do you open this session?', 2)
      await xdotool('type', '--delay', '20', 'again')
      await xdotool('key', 'Return', 'Return')
      await reads('Waiting for an approval', 2)
      return (await approvers.next()).id
    }
    const rejected = await tiger()
    await approvers.answer(await type(), 'reject', 'not today')
    await reads('not today', 2)
    await endsBy(rejected, () => xdotool('key', 'Return'))
    await tiger()
    const id = await type()
    await xdotool('key', 'Escape')
    await reads('was withdrawn', 2)
    await approvers.reaches(id, 'cancelled')
  })

  test('an RDP client waits, and has the desktop', async () => {
    const { broker, password } = desktop
    await keep(xfreerdp(screen, { port: broker.ports.rdp!, user: rdpLogin, password }, [], RDP_SIZE))
    await reads('Waiting for an approval', 1)
    const { id } = await approvers.next()
    await approvers.answer(id, 'accept')
    const picture = stripes(RDP_SIZE.width, RDP_SIZE.height)
    await shadow.paint(picture)
    await shows(screen.display, (shown) => isWithin(shown, picture))
    // A client that goes while it waits withdraws its request.
    for (const viewer of viewers.splice(0)) await viewer.stop()
    const again = await keep(
      xfreerdp(screen, { port: broker.ports.rdp!, user: rdpLogin, password }, [], RDP_SIZE),
    )
    const next = await approvers.next()
    await reads('Waiting for an approval', 1)
    await again.stop()
    await approvers.reaches(next.id, 'cancelled')
  })
})
