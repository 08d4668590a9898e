/**
 * Desktops over RDP through the bastion: real clients and targets, with the picture, the input and the
 * recording.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { readPng } from '../peers/live-desktop.ts'
import { describeWithPeers } from '../peers/program.ts'
import { SHADOW_PEERS } from '../peers/rdp/shadow.ts'
import { startTap } from '../peers/rdp/tap.ts'
import { RDP_VIEWER_PEERS } from '../peers/rdp/viewers.ts'
import { startWeston, WESTON_PEERS } from '../peers/rdp/weston.ts'
import { XRDP_PEERS } from '../peers/rdp/xrdp.ts'
import { differingPixels, type Picture, SCREEN_PEERS, shows } from '../peers/screen.ts'
import type { SystemUser } from '../peers/users.ts'
import { endsBy } from '../peers/viewer.ts'
import { until } from '../until.ts'
import type { ReachableDesktop } from './desktop-targets.ts'
import {
  type RdpDesktop,
  type ShadowTarget,
  startRdpDesktop,
  startShadowTarget,
  startXrdpTargets,
  type XrdpTargets,
} from './rdp-desktops.ts'
import { type Seat, startSeat } from './rdp-seat.ts'
import { fieldsOf, filesWith, formsOf, framesOf, sallyport } from './recorded.ts'

const [WIDTH, HEIGHT] = [800, 600]
/** The rights that xfreerdp requests by itself: with all of them no notice of missing rights is shown. */
const QUIET = ['RDP', 'RDP_CLIPBOARD_UP', 'RDP_CLIPBOARD_DOWN', 'RDP_DRIVE', 'RDP_AUDIO_OUTPUT']

/** Noise, flat parts and a gradient. */
function painting(seed: number): Picture {
  const rgb = Buffer.alloc(WIDTH * HEIGHT * 3)
  let state = seed
  for (let y = 0; y < HEIGHT; y++) {
    for (let x = 0; x < WIDTH; x++) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
      const drawn = x < 500 ? (y < 300 ? state >> 7 : (x << 16) | (y << 8)) : 0x203040 * seed
      rgb.writeUIntBE((drawn ^ (seed << 4)) & 0xffffff, 3 * (y * WIDTH + x), 3)
    }
  }
  return { width: WIDTH, height: HEIGHT, rgb }
}

/** Colours that 16 bits can express, without noise: FreeRDP's encoder changes noise at that depth. */
function fewColours(seed: number): Picture {
  const rgb = Buffer.alloc(WIDTH * HEIGHT * 3)
  for (let at = 0; at < rgb.length; at++) rgb[at] = (at * 7 + (at >> 8) * 13 + seed) & 0x80 ? 0xff : 0
  return { width: WIDTH, height: HEIGHT, rgb }
}

describeWithPeers('RDP', [...RDP_VIEWER_PEERS, ...SCREEN_PEERS, 'xdpyinfo'], () => {
  let desktop: RdpDesktop
  let seat: Seat

  beforeAll(async () => {
    desktop = await startRdpDesktop()
    seat = await startSeat(desktop, { width: WIDTH, height: HEIGHT })
  })
  afterEach(async () => {
    await seat.clear()
  })
  afterAll(async () => {
    await desktop.stop()
    await seat.stop()
  })

  async function png(id: string): Promise<Picture> {
    const done = await sallyport(desktop.broker, ['recordings', 'export', id, '--format', 'png'])
    expect(done.stderr).toBe('')
    return readPng(done.bytes)
  }

  describeWithPeers('to FreeRDP’s shadow', SHADOW_PEERS, () => {
    const targets: Record<string, ShadowTarget> = {}
    const reach: Record<string, ReachableDesktop> = {}

    beforeAll(async () => {
      for (const name of ['nla', 'tls'] as const) {
        const target = await startShadowTarget(name, { width: WIDTH, height: HEIGHT })
        targets[name] = target
        const { port, account, password } = target
        const policy = { logon_wait: 0, mask_keys: false }
        reach[name] = await desktop.add({ name, port, account, password, subprotocols: QUIET, policy })
      }
    })
    afterAll(async () => {
      for (const target of Object.values(targets)) await target.stop()
    })

    const seen = async (security: 'nla' | 'tls', picture: Picture): Promise<void> => {
      await targets[security]!.paint(picture)
      await shows(seat.screen.display, (all) => differingPixels(seat.cut(all), picture) === 0)
    }

    test.each([
      ['nla', 32, painting],
      ['nla', 16, fewColours],
      ['tls', 32, painting],
    ] as const)('by %s at %i bits, client and replay show it pixel by pixel', async (name, depth, paint) => {
      await reach[name]!.policy({ colour_depth: depth })
      const viewer = await seat.view(reach[name]!.login, [`/bpp:${depth}`])
      await seen(name, paint(1))
      await seen(name, paint(2))
      const id = await seat.ended(viewer)
      expect(differingPixels(await png(id), paint(2))).toBe(0)
      const row = (await desktop.closedSessions()).find((one) => one.id === id)
      expect(row).toMatchObject({
        user: 'ops1',
        result: 'success',
        subprotocols: expect.arrayContaining(['RDP']),
      })
      const frames = await framesOf(desktop.broker, id)
      expect(fieldsOf(frames, 'channel_open')).toMatchObject([
        { kind: 'rdp', desktop: { width: WIDTH, height: HEIGHT } },
      ])
    })

    test('is killed with words on the screen, after which the client ends', async () => {
      const viewer = await seat.view(reach['tls']!.login, ['/bpp:32'])
      await seen('tls', painting(3))
      const [running] = await desktop.broker.must<{ id: string }[]>('GET', '/sessions?status=current')
      await desktop.broker.must('POST', `/sessions/${running!.id}/kill`, { reason: 'enough' })
      const words = await shows(
        seat.screen.display,
        (all) => differingPixels(seat.cut(all), painting(3)) > 10_000,
      )
      expect(words.rgb.some((byte) => byte !== 0)).toBe(true)
      const killed = await until('its end', async () =>
        (await desktop.closedSessions()).find(({ id }) => id === running!.id),
      )
      expect(killed).toMatchObject({ result: 'killed' })
      await seat.xdotool('mousemove', '400', '300', 'click', '1')
      await endsBy(viewer, () => seat.xdotool('key', 'Return'))
    })
  })

  describeWithPeers('to xrdp', XRDP_PEERS, () => {
    let targets: XrdpTargets

    beforeAll(async () => {
      targets = await startXrdpTargets(desktop)
    })
    afterAll(async () => {
      await targets.stop()
    })

    /** Returns the content that the target's desktop has written into a file of the user. */
    const written = (user: SystemUser, name: string) =>
      until(
        () => `${name}; came: ${targets.log()} ${desktop.broker.log()}`,
        () => {
          const path = join(user.home, name)
          return (existsSync(path) && readFileSync(path, 'utf8').trim()) || undefined
        },
      )
    const isWhite = ({ width, rgb }: Picture, x: number, y: number): boolean =>
      rgb.readUIntBE((y * width + x) * 3, 3) === 0xffffff

    test('the account signs in, whose password the client never sees and no file has', async () => {
      const program = 'id -un >"$HOME/who"; exec xterm -geometry 80x24+0+0 -e sh'
      const { login, user } = await targets.add('injected', program)
      const tap = await startTap(desktop.port)
      const viewer = await seat.view({ user: login, port: tap.port })
      expect(await written(user, 'who')).toBe(user.name)
      await shows(seat.screen.display, (all) => isWhite(all, 200, 300))
      await seat.xdotool('mousemove', '200', '200', 'click', '1')
      await seat.enter('id -un >typed')
      expect(await written(user, 'typed')).toBe(user.name)
      const id = await seat.ended(viewer)
      tap.stop()
      // The client's own password proves that the search covers the forms in which secrets are sent.
      expect(formsOf(desktop.password).some((form) => tap.up().includes(form))).toBe(true)
      expect(tap.down().length).toBeGreaterThan(10_000)
      expect(formsOf(user.password).some((form) => tap.down().includes(form))).toBe(false)
      expect(filesWith(desktop.broker.dataFolder, [user.password])).toEqual([])
      expect(desktop.broker.log()).not.toContain(user.password)
      const frames = await framesOf(desktop.broker, id)
      expect(frames.filter(({ type }) => type === 'key').length).toBeGreaterThan(10)
      expect(JSON.stringify(frames.filter(({ type }) => type === 'key'))).not.toContain('"code"')
    })

    test('takes the size of the client’s window', async () => {
      const program = 'while sleep 0.2; do xdpyinfo | grep dimensions >"$HOME/size"; done & exec xterm'
      const { login, user } = await targets.add('sized', program)
      const viewer = await seat.view(login, ['/dynamic-resolution'])
      const sized = (size: string) =>
        until(
          () => `${size}; came: ${viewer.log()}`,
          async () => ((await written(user, 'size')).includes(size) ? true : undefined),
        )
      await sized('800x600')
      await until('the window', async () => {
        const search = ['search', '--onlyvisible', '--name', 'FreeRDP', 'windowsize', '640', '480']
        return (await seat.xdotool(...search)).code === 0 || undefined
      })
      await sized('640x480')
      const id = await seat.ended(viewer)
      const frames = await framesOf(desktop.broker, id)
      expect(fieldsOf(frames, 'desktop_size')).toContainEqual({ width: 640, height: 480 })
    })
  })

  describeWithPeers('to Weston', WESTON_PEERS, () => {
    test('is refused by the target, and the person is told why', async () => {
      const weston = await startWeston(WIDTH, HEIGHT)
      const policy = { logon_wait: 0 }
      const target = { name: 'weston', port: weston.port, account: 'any', password: 'any', policy }
      const { login } = await desktop.add({ ...target, subprotocols: QUIET })
      const before = (await desktop.closedSessions()).length
      await seat.view(login)
      const row = (await desktop.closedSessions(before + 1)).at(-1)!
      expect(row.result).toBe('failure')
      expect(row.reason).toMatch(/surface commands|drawn|pictures/)
      await shows(seat.screen.display, ({ rgb }) => rgb.some((byte) => byte !== 0))
      await weston.stop()
    })
  })
})
