/** Desktops through the bastion: a real viewer, a real Xvnc, and what is to be seen, done and recorded. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { cut, differingPixels, paint, type Picture, type Screen, SCREEN_PEERS, shows, startScreen } from '../peers/screen.ts'
import { XVNC_PEERS } from '../peers/vnc/servers.ts'
import { TIGER_VIEWER_PEERS, tigerViewer, type Viewer } from '../peers/vnc/viewers.ts'
import { type Desktop, startDesktop } from './desktops.ts'
import { framesOf } from './recorded.ts'

/** Noise and flat parts, so that every kind of tile occurs. */
function painting(width: number, height: number, seed: number): Picture {
  const rgb = Buffer.alloc(width * height * 3)
  let state = seed
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      state = (state * 1_103_515_245 + 12_345) & 0x7fffffff
      const at = 3 * (y * width + x)
      const colour = x < width / 3 ? 0x204060 + seed : x < width / 2 ? state >> 7 : ((x >> 3) << 16) | (y << 8) | (seed & 0xff)
      rgb.writeUIntBE(colour & 0xffffff, at, 3)
    }
  }
  return { width, height, rgb }
}

describeWithPeers('a desktop', [...XVNC_PEERS, ...TIGER_VIEWER_PEERS, ...SCREEN_PEERS, 'xdotool'], () => {
  let desktop: Desktop
  let screen: Screen
  const viewers: Viewer[] = []

  beforeAll(async () => {
    desktop = await startDesktop({ subprotocols: ['VNC', 'VNC_CLIPBOARD_UP', 'VNC_CLIPBOARD_DOWN'] })
    screen = await startScreen()
  })
  afterAll(async () => {
    await desktop.stop()
    await screen.stop()
  })
  afterEach(async () => {
    for (const viewer of viewers.splice(0)) await viewer.stop()
  })

  async function view(args: readonly string[] = []): Promise<Viewer> {
    const { port, login: user, password } = desktop
    const viewer = await tigerViewer(screen, { port, user, password, types: ['TLSPlain'], args })
    viewers.push(viewer)
    return viewer
  }

  test('is shown as it is', async () => {
    const picture = painting(640, 480, 1)
    await paint(desktop.xvnc!.display, picture)
    const viewer = await view()
    try {
    await shows(screen.display, (shown) => differingPixels(cut(shown, 0, 0, 640, 480), picture) === 0)
    } catch (e) { const a = await screen.picture(); const b = await desktop.xvnc!.picture(); console.log(differingPixels(cut(a,0,0,640,480), picture), differingPixels(cut(a,0,0,640,480), b), differingPixels(b, picture)); await run('import', ['-display', screen.display, '-window', 'root', '/tmp/rfb-shot.png']); throw e }
    await viewer.stop()
    const [row] = await desktop.closedSessions(1)
    expect(row).toMatchObject({ user: 'ops1', result: 'success', subprotocols: ['VNC'] })
    const frames = await framesOf(desktop.broker, row!.id)
    console.log(frames.map((f) => f.type).slice(0, 10), await run(findProgram('xdotool'), ['version']))
  })
})
