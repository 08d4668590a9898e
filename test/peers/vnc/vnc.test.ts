/** VNC's real servers and viewers by themselves, without a bastion: a failure here is not the bastion's. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeWithPeers } from '../program.ts'
import {
  cut,
  differingPixels,
  isWithin,
  type Picture,
  paint,
  pictureOf,
  type Screen,
  shows,
  startScreen,
} from '../screen.ts'
import { canCreateUsers, createSystemUser, type SystemUser } from '../users.ts'
import { startX11vnc, startXvnc, X11VNC_PEERS, XVNC_PEERS, type Xvnc } from './servers.ts'
import {
  GVNC_PEERS,
  gvncCapture,
  REMMINA_PEERS,
  remmina,
  SNAPSHOT_PEERS,
  TIGER_VIEWER_PEERS,
  tigerViewer,
  vncSnapshot,
} from './viewers.ts'

const PASSWORD = 'VncPass1'
const [WIDTH, HEIGHT] = [640, 480]

/** Makes a picture in which no two neighbours and no two rows are equal. */
function stripes(): Picture {
  const rgb = Buffer.alloc(WIDTH * HEIGHT * 3)
  for (let at = 0; at < rgb.length; at++) rgb[at] = (at * 7 + Math.floor(at / (WIDTH * 3)) * 13) & 0xff
  return { width: WIDTH, height: HEIGHT, rgb }
}

describeWithPeers('Xtigervnc', [...XVNC_PEERS, 'display'], () => {
  let server: Xvnc
  let user: SystemUser | undefined
  let screen: Screen

  beforeAll(async () => {
    if (canCreateUsers()) user = await createSystemUser()
    server = await startXvnc({
      types: ['TLSPlain', 'VncAuth'],
      password: PASSWORD,
      width: WIDTH,
      height: HEIGHT,
    })
    await paint(server.display, stripes())
    screen = await startScreen()
  })

  afterAll(async () => {
    await screen?.stop()
    await server?.stop()
    await user?.remove()
  })

  test('what is painted is there to be seen', async () => {
    expect(differingPixels(await pictureOf(server.display), stripes())).toBe(0)
  })

  describeWithPeers('xtigervncviewer', TIGER_VIEWER_PEERS, () => {
    test('shows it pixel by pixel, and ends where the password is wrong', async () => {
      const viewer = await tigerViewer(screen, {
        port: server.port,
        password: PASSWORD,
        types: ['VncAuth'],
      })
      await shows(screen.display, (seen) => isWithin(seen, stripes()))
      await viewer.stop()
      const wrong = await tigerViewer(screen, { port: server.port, password: 'wrong', types: ['VncAuth'] })
      await wrong.ended
      expect(wrong.log()).toMatch(/Authentication fail/)
      await wrong.stop()
    })

    test.runIf(canCreateUsers())('signs in as a user of the system', async () => {
      const { name, password } = user!
      const viewer = await tigerViewer(screen, { port: server.port, user: name, password })
      await shows(screen.display, (seen) => isWithin(seen, stripes()))
      expect(viewer.log()).toContain('TLSPlain')
      await viewer.stop()
    })
  })

  describeWithPeers('gvnccapture', GVNC_PEERS, () => {
    test.runIf(canCreateUsers())('takes a picture', async () => {
      const { name, password } = user!
      const { picture, said } = await gvncCapture({ port: server.port, user: name, password })
      expect(said).toContain('Saved display')
      expect(differingPixels(picture!, stripes())).toBe(0)
    })
  })

  describeWithPeers('vncsnapshot', SNAPSHOT_PEERS, () => {
    test('takes a picture', async () => {
      const { picture } = await vncSnapshot({ port: server.port, password: PASSWORD })
      expect(picture).toMatchObject({ width: WIDTH, height: HEIGHT })
    })
  })

  describeWithPeers('Remmina', REMMINA_PEERS, () => {
    test.runIf(canCreateUsers())('shows it', async () => {
      const { name, password } = user!
      const viewer = await remmina(screen, { port: server.port, user: name, password })
      await shows(screen.display, (seen) => isWithin(seen, cut(stripes(), 0, 0, 200, 200)))
      await viewer.stop()
    })
  })

  describeWithPeers('x11vnc', [...X11VNC_PEERS, ...GVNC_PEERS], () => {
    test('shares a display', async () => {
      const shared = await startX11vnc(server.display, { password: 'X11pass1' })
      const { picture } = await gvncCapture({ port: shared.port, password: 'X11pass1' })
      expect(differingPixels(picture!, stripes())).toBe(0)
      await shared.stop()
    })
  })
})
