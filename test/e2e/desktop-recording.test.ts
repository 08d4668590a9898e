/**
 * The recording of a desktop equals the viewer's screen pixel by pixel: afterwards, and for live watchers.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { watchAsAdmin } from '../peers/live.ts'
import { LiveCanvas, readPng } from '../peers/live-desktop.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import {
  differingPixels,
  isWithin,
  type Picture,
  paint,
  SCREEN_PEERS,
  type Screen,
  shows,
  startScreen,
} from '../peers/screen.ts'
import type { Viewer } from '../peers/viewer.ts'
import { XVNC_PEERS } from '../peers/vnc/servers.ts'
import { TIGER_VIEWER_PEERS, tigerViewer } from '../peers/vnc/viewers.ts'
import { until } from '../until.ts'
import { type Desktop, startDesktop } from './desktops.ts'
import { framesOf, sallyport } from './recorded.ts'

const WIDTH = 320
const HEIGHT = 240

/** Noise, few colours, flat parts and a gradient, so that encodings use all their features. */
function painting(seed: number): Picture {
  const rgb = Buffer.alloc(WIDTH * HEIGHT * 3)
  for (let y = 0; y < HEIGHT; y++) {
    for (let x = 0; x < WIDTH; x++) {
      const noise = (Math.imul(x * 31 + y * 17 + seed * 7919, 2654435761) >>> 8) & 0xffffff
      const kinds = [noise, (x << 16) | (y << 8) | seed, 0x203040 * seed, (noise & 3) * 0x3f2f1f]
      const kind = (Math.floor(x / 80) + Math.floor(y / 60)) % 4
      rgb.writeUIntBE(kinds[kind]! & 0xffffff, 3 * (y * WIDTH + x), 3)
    }
  }
  return { width: WIDTH, height: HEIGHT, rgb }
}

describeWithPeers('a desktop', [...XVNC_PEERS, ...TIGER_VIEWER_PEERS, ...SCREEN_PEERS, 'xdotool'], () => {
  let desktop: Desktop
  let screen: Screen
  const viewers: Viewer[] = []

  beforeAll(async () => {
    desktop = await startDesktop({ target: { width: WIDTH, height: HEIGHT } })
    screen = await startScreen(640, 480)
    // The pointer is not part of the desktop.
    await xdotool('mousemove', '600', '400')
  })
  afterEach(async () => {
    for (const viewer of viewers.splice(0)) await viewer.stop()
  })
  afterAll(async () => {
    await desktop.stop()
    await screen.stop()
  })

  const xdotool = (...args: string[]) =>
    run(findProgram('xdotool'), args, { env: { ...process.env, DISPLAY: screen.display } })

  async function view(encoding: string): Promise<Viewer> {
    const { port, login: user, password } = desktop
    const args = ['-PreferredEncoding', encoding]
    const viewer = await tigerViewer(screen, { port, user, password, types: ['TLSPlain'], args })
    viewers.push(viewer)
    return viewer
  }

  /** Paints the target's screen and waits until the viewer shows the same pixels. */
  async function painted(seed: number): Promise<Picture> {
    const picture = painting(seed)
    await paint(desktop.xvnc!.display, picture)
    await shows(screen.display, (all) => isWithin(all, picture))
    return picture
  }

  async function png(id: string, at?: number): Promise<Picture> {
    const moment = at === undefined ? [] : ['--at', String(at)]
    const done = await sallyport(desktop.broker, ['recordings', 'export', id, '--format', 'png', ...moment])
    expect(done.stderr).toBe('')
    return readPng(done.bytes)
  }

  test.each(['Raw', 'Hextile', 'ZRLE', 'Tight'])('in %s', async (encoding) => {
    const before = (await desktop.closedSessions()).length
    const viewer = await view(encoding)
    const first = await painted(1)
    // A mark in the recording: all of the first picture comes before it, all of the second after it.
    await until('a window', async () => {
      const focused = await xdotool('search', '--onlyvisible', '--name', 'TigerVNC', 'windowfocus')
      return focused.code === 0 || undefined
    })
    await xdotool('key', 'F9')
    const second = await painted(2)
    expect(differingPixels(first, second)).toBeGreaterThan(10_000)
    await viewer.stop()
    const { id } = (await desktop.closedSessions(before + 1)).at(-1)!
    expect(differingPixels(await png(id), second)).toBe(0)
    // Once is enough for the mark: the code that finds a moment is the same for every encoding.
    if (encoding !== 'ZRLE') return
    const mark = (await framesOf(desktop.broker, id)).find(({ type }) => type === 'key')!
    expect(differingPixels(await png(id, mark.time), first)).toBe(0)
  })

  test('for those who watch, from the beginning or later', async () => {
    await view('ZRLE')
    const { id } = await until('a session', async () => {
      const rows = await desktop.broker.must<{ id: string }[]>('GET', '/sessions?status=current')
      return rows[0]
    })
    const watcher = await watchAsAdmin(desktop.broker, id)
    const canvas = new LiveCanvas()
    const seen = (picture: Picture) =>
      until(
        'the picture on a canvas',
        () => differingPixels(canvas.after(watcher.messages), picture) === 0 || undefined,
      )
    await seen(await painted(3))
    const last = await painted(4)
    await seen(last)
    const later = await watchAsAdmin(desktop.broker, id)
    const other = new LiveCanvas()
    await until(
      'the whole picture',
      () => differingPixels(other.after(later.messages), last) === 0 || undefined,
    )
    expect(later.messages.filter(({ type }) => type === 'graphics')).toEqual([])
    await watcher.close()
    await later.close()
  })

  test('forms for terminals are refused by the API, with what there is instead', async () => {
    const [row] = await desktop.closedSessions(1)
    const answer = await desktop.broker.api<{ error: string }>('GET', `/sessions/${row!.id}/recording.cast`)
    expect([answer.status, answer.body.error]).toEqual([409, 'graphic_session'])
  })
})
