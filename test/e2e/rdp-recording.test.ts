/**
 * The recording of an RDP desktop equals the client's screen with the pointer, pixel by pixel: afterwards,
 * and live.
 */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { CURSOR_PEERS, cursorOf, withCursor } from '../peers/cursor.ts'
import { watchAsAdmin } from '../peers/live.ts'
import { LiveCanvas, readPng } from '../peers/live-desktop.ts'
import { describeWithPeers } from '../peers/program.ts'
import { RDP_VIEWER_PEERS } from '../peers/rdp/viewers.ts'
import { XRDP_PEERS } from '../peers/rdp/xrdp.ts'
import { cut, differingPixels, type Picture, SCREEN_PEERS, settled } from '../peers/screen.ts'
import { until } from '../until.ts'
import { type RdpDesktop, startRdpDesktop, startXrdpTargets, type XrdpTargets } from './rdp-desktops.ts'
import { type Seat, startSeat } from './rdp-seat.ts'
import { framesOf, sallyport } from './recorded.ts'

const SIZE = { width: 640, height: 480 }
/** The rights that xfreerdp requests by itself: with all of them no notice of missing rights is shown. */
const RIGHTS = [
  ...['RDP', 'RDP_CLIPBOARD_UP', 'RDP_CLIPBOARD_DOWN', 'RDP_CLIPBOARD_FILE'],
  ...['RDP_DRIVE', 'RDP_AUDIO_OUTPUT'],
]
const SMALLER = { width: 512, height: 400 }
/** Microseconds count: no frame lies between this time and the one before it. */
const JUST_BEFORE = 2e-6

/** Noise, flat parts and a gradient. */
function painting(): Buffer {
  const rgb = Buffer.alloc(SIZE.width * SIZE.height * 3)
  for (let y = 0; y < SIZE.height; y++) {
    for (let x = 0; x < SIZE.width; x++) {
      const noise = Math.imul(x * 31 + y * 17, 2654435761) >>> 8
      const kinds = [noise, (x << 16) | (y << 8) | 0x55, 0x203040, (noise & 3) * 0x3f2f1f]
      const kind = (Math.floor(x / 80) + Math.floor(y / 60)) % 4
      rgb.writeUIntBE(kinds[kind]! & 0xffffff, 3 * (y * SIZE.width + x), 3)
    }
  }
  return Buffer.concat([Buffer.from(`P6 ${SIZE.width} ${SIZE.height} 255\n`), rgb])
}

/** FreeRDP has its own way to make eight bits of green's six. */
function asFreeRdp(picture: Picture): Picture {
  const rgb = Buffer.from(picture.rgb)
  for (let at = 1; at < rgb.length; at += 3) {
    const green = rgb[at]! >> 2
    rgb[at] = Math.min(0xff, (green << 2) + (green >> 3))
  }
  return { ...picture, rgb }
}

const PEERS = [...RDP_VIEWER_PEERS, ...SCREEN_PEERS, ...XRDP_PEERS, ...CURSOR_PEERS, 'xdpyinfo'] as const

describeWithPeers('an RDP desktop', PEERS, () => {
  let desktop: RdpDesktop
  let targets: XrdpTargets
  let seat: Seat

  beforeAll(async () => {
    desktop = await startRdpDesktop()
    targets = await startXrdpTargets(desktop)
    seat = await startSeat(desktop, SIZE)
  })
  afterEach(async () => {
    await seat.clear()
  })
  afterAll(async () => {
    await targets.stop()
    await desktop.stop()
    await seat.stop()
  })

  const point = async (x: number, y: number) => void (await seat.xdotool('mousemove', `${x}`, `${y}`))

  /** Returns the client's desktop with the pointer, once neither changes any more. */
  async function shown({ width, height }: { width: number; height: number }): Promise<Picture> {
    const picture = await settled(seat.screen.display)
    return cut(withCursor(picture, cursorOf(seat.screen.display)), 0, 0, width, height)
  }

  async function png(id: string, at?: number): Promise<Picture> {
    const moment = at === undefined ? [] : ['--at', String(at)]
    const done = await sallyport(desktop.broker, ['recordings', 'export', id, '--format', 'png', ...moment])
    expect(done.stderr).toBe('')
    return readPng(done.bytes)
  }

  test.each([32, 16] as const)('at %i bits', { timeout: 300_000 }, async (depth) => {
    const before = (await desktop.closedSessions()).length
    const asSeen = (picture: Picture) => (depth === 16 ? asFreeRdp(picture) : picture)
    const program = [
      'while [ ! -e "$HOME/picture.ppm" ]; do sleep 0.1; done',
      'display -window root "$HOME/picture.ppm"',
      `until xdpyinfo | grep -q ${SMALLER.width}x${SMALLER.height}; do sleep 0.1; done && touch "$HOME/${SMALLER.width}x${SMALLER.height}" &`,
      'exec xterm -geometry 30x8+100+80 -e sh',
    ]
    const { login, user } = await targets.add(`depth${depth}`, program.join('\n'), {
      policy: { colour_depth: depth },
      subprotocols: RIGHTS,
    })
    writeFileSync(join(user.home, 'picture.ppm'), painting(), { mode: 0o644 })
    await seat.view(login, ['/dynamic-resolution', `/bpp:${depth}`])
    const { id } = await until('a session', async () => {
      const rows = await desktop.broker.must<{ id: string }[]>('GET', '/sessions?status=current')
      return rows[0]
    })
    await until('xterm on the painting', async () => {
      const { width, rgb } = await settled(seat.screen.display)
      return rgb.readUIntBE(3 * (150 * width + 200), 3) === 0xffffff || undefined
    })
    await point(500, 400)
    const overRoot = await shown(SIZE)
    await point(200, 150)
    const overXterm = await shown(SIZE)
    expect(differingPixels(overRoot, overXterm)).toBeGreaterThan(0)
    await point(201, 151)
    await settled(seat.screen.display)
    const { width, height } = SMALLER
    await seat.xdotool('search', '--onlyvisible', '--name', 'FreeRDP', 'windowsize', `${width}`, `${height}`)
    await until('a smaller desktop', () => existsSync(join(user.home, `${width}x${height}`)) || undefined)
    await point(300, 200)
    const smaller = await shown(SMALLER)
    const watcher = await watchAsAdmin(desktop.broker, id)
    const canvas = new LiveCanvas()
    const watched = (what: string, isRight: (picture: Picture) => boolean) =>
      until(what, () => {
        const picture = asSeen(canvas.after(watcher.messages))
        return isRight(picture) ? picture : undefined
      })
    await watched('all of it', (picture) => differingPixels(picture, smaller) === 0)
    await point(301, 201)
    const last = await watched('the pointer', (picture) => differingPixels(picture, smaller) > 0)
    await watcher.close()
    await seat.clear()
    await desktop.closedSessions(before + 1)

    const pointers = (await framesOf(desktop.broker, id)).filter(({ type }) => type === 'pointer')
    const beforePointer = (x: number, y: number) =>
      pointers.find(({ data }) => data?.['x'] === x && data['y'] === y)!.time - JUST_BEFORE
    const replayed = async (at?: number) => asSeen(await png(id, at))
    expect(differingPixels(await replayed(beforePointer(200, 150)), overRoot)).toBe(0)
    expect(differingPixels(await replayed(beforePointer(201, 151)), overXterm)).toBe(0)
    expect(differingPixels(await replayed(beforePointer(301, 201)), smaller)).toBe(0)
    expect(differingPixels(await replayed(), last)).toBe(0)
  })

  test('forms for terminals are refused, with what there is instead', async () => {
    const [row] = await desktop.closedSessions(1)
    const answer = await desktop.broker.api<{ error: string }>('GET', `/sessions/${row!.id}/recording.html`)
    expect([answer.status, answer.body.error]).toEqual([409, 'graphic_session'])
    const played = await sallyport(desktop.broker, ['recordings', 'play', row!.id])
    expect(played.stderr).toContain(`recordings export ${row!.id} --format png`)
  })
})
