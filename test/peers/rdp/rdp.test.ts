/** RDP's real servers and clients by themselves, without a bastion: a failure here is not the bastion's. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { until } from '../../until.ts'
import { describeWithPeers } from '../program.ts'
import {
  cut,
  differingPixels,
  isWithin,
  type Picture,
  paint,
  SCREEN_PEERS,
  type Screen,
  shows,
  startScreen,
} from '../screen.ts'
import { createSystemUser, type SystemUser } from '../users.ts'
import type { Viewer } from '../viewer.ts'
import { setDesktop } from './sesman.ts'
import { SHADOW_PEERS, type Shadow, startShadow } from './shadow.ts'
import {
  RDESKTOP_PEERS,
  RDP_VIEWER_PEERS,
  REMMINA_RDP_PEERS,
  rdesktop,
  remminaRdp,
  xfreerdp,
} from './viewers.ts'
import { startWeston, WESTON_PEERS } from './weston.ts'
import { startXrdp, XRDP_PEERS, type Xrdp } from './xrdp.ts'

const [WIDTH, HEIGHT] = [800, 600]
const PASSWORD = 'Target-Pass1'

/** Makes a picture in which all pixels differ. */
function stripes(): Picture {
  const rgb = Buffer.alloc(WIDTH * HEIGHT * 3)
  for (let at = 0; at < rgb.length; at++) rgb[at] = (at * 7 + Math.floor(at / (WIDTH * 3)) * 13) & 0xff
  return { width: WIDTH, height: HEIGHT, rgb }
}

let screen: Screen
const viewers: Viewer[] = []
const keep = async (viewer: Promise<Viewer>): Promise<Viewer> => {
  viewers.push(await viewer)
  return viewer
}

beforeAll(async () => {
  screen = await startScreen(WIDTH, HEIGHT)
})
afterEach(async () => {
  for (const viewer of viewers.splice(0)) await viewer.stop()
})
afterAll(async () => {
  await screen.stop()
})

describeWithPeers('FreeRDP’s shadow', [...SHADOW_PEERS, ...SCREEN_PEERS], () => {
  let shared: Screen
  let nla: Shadow
  let tls: Shadow

  beforeAll(async () => {
    shared = await startScreen(WIDTH, HEIGHT)
    await paint(shared.display, stripes())
    nla = await startShadow({
      screen: shared,
      security: 'nla',
      users: [{ name: 'alice', password: PASSWORD }],
    })
    tls = await startShadow({ screen: shared, security: 'tls' })
  })
  afterAll(async () => {
    for (const one of [nla, tls, shared]) await one?.stop()
  })

  describeWithPeers('xfreerdp', RDP_VIEWER_PEERS, () => {
    test.each(['nla', 'tls'] as const)('shows it pixel by pixel by %s', async (security) => {
      const { port } = security === 'nla' ? nla : tls
      await keep(
        xfreerdp(screen, { port, user: 'alice', password: PASSWORD }, [`/sec:${security}`, '/bpp:32']),
      )
      await shows(screen.display, (seen) => differingPixels(seen, stripes()) === 0)
    })

    test('ends where the password is wrong', async () => {
      const login = { port: nla.port, user: 'alice', password: 'wrong' }
      expect(await (await keep(xfreerdp(screen, login, ['/sec:nla']))).ended).not.toBe(0)
    })
  })

  describeWithPeers('Remmina', REMMINA_RDP_PEERS, () => {
    test('shows it with a profile that has the password', async () => {
      await keep(
        remminaRdp(screen, { port: nla.port, user: 'alice', password: PASSWORD }, { security: 'nla' }),
      )
      // The window shows only a part of it.
      await shows(screen.display, (seen) => isWithin(seen, cut(stripes(), 300, 200, 100, 100)))
    })
  })
})

describeWithPeers('xrdp', [...XRDP_PEERS, ...SCREEN_PEERS, ...RDP_VIEWER_PEERS], () => {
  let user: SystemUser
  let xrdp: Xrdp

  beforeAll(async () => {
    user = await createSystemUser()
    setDesktop(user, 'id -un >"$HOME/who"; exec xterm -geometry 80x24+0+0 -e sh')
    xrdp = await startXrdp()
  })
  afterAll(async () => {
    await xrdp?.stop()
    await user?.remove()
  })

  const login = () => ({ user: user.name, password: user.password })
  /** Waits for the white of xterm. */
  const terminal = () =>
    shows(screen.display, ({ rgb }) => rgb.readUIntBE((300 * WIDTH + 200) * 3, 3) === 0xffffff)

  test('has a desktop of the user’s, beside the one of another xrdp', async () => {
    const other = await startXrdp()
    const viewer = await keep(xfreerdp(screen, { port: other.port, ...login() }))
    const who = join(user.home, 'who')
    const said = () => (existsSync(who) && readFileSync(who, 'utf8')) || undefined
    expect(await until(() => `${xrdp.log()} ${other.log()}`, said)).toBe(`${user.name}\n`)
    await terminal()
    await viewer.stop()
    await other.stop()
    // The session manager still runs, for the first one.
    await keep(xfreerdp(screen, { port: xrdp.port, ...login() }))
    await terminal()
  })

  describeWithPeers('rdesktop', RDESKTOP_PEERS, () => {
    test('shows it', async () => {
      await keep(rdesktop(screen, { port: xrdp.port, ...login() }))
      await terminal()
    })
  })
})

describeWithPeers('Weston', [...WESTON_PEERS, ...RDP_VIEWER_PEERS], () => {
  test('shows its desktop to a client that takes surface commands', async () => {
    const weston = await startWeston(WIDTH, HEIGHT)
    await keep(xfreerdp(screen, { port: weston.port, user: 'any', password: 'any' }, ['/rfx']))
    await shows(screen.display, ({ rgb }) => rgb.some((byte) => byte !== 0))
    await weston.stop()
  })
})
