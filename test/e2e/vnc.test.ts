/**
 * Desktops through the bastion: a real viewer and a real Xvnc, with the picture, the input and the recording.
 */
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Daemon, run, startDaemon } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
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
import { type Desktop, startDesktop } from './desktops.ts'
import { fieldsOf, framesOf } from './recorded.ts'

const WIDTH = 320
const HEIGHT = 240
const PROGRAMS = ['xdotool', 'xclip', 'xterm', 'xev'] as const

/** Noise, flat parts and a gradient, so that tiles of every kind occur. */
function painting(seed: number): Picture {
  const rgb = Buffer.alloc(WIDTH * HEIGHT * 3)
  let state = seed
  for (let y = 0; y < HEIGHT; y++) {
    for (let x = 0; x < WIDTH; x++) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
      const drawn = x < 200 ? (y < 100 ? state >> 7 : (x << 16) | (y << 8)) : 0x203040 * seed
      rgb.writeUIntBE((drawn ^ (seed << 4)) & 0xffffff, 3 * (y * WIDTH + x), 3)
    }
  }
  return { width: WIDTH, height: HEIGHT, rgb }
}

describeWithPeers('a desktop', [...XVNC_PEERS, ...TIGER_VIEWER_PEERS, ...SCREEN_PEERS, ...PROGRAMS], () => {
  let desktop: Desktop
  let screen: Screen
  let target: string
  const viewers: Viewer[] = []
  const programs: Daemon[] = []

  beforeAll(async () => {
    desktop = await startDesktop({
      target: { width: WIDTH, height: HEIGHT },
      subprotocols: ['VNC', 'VNC_CLIPBOARD_UP', 'VNC_CLIPBOARD_DOWN'],
      policy: { mask_keys: false },
    })
    screen = await startScreen(640, 480)
    target = desktop.xvnc!.display
  })
  afterAll(async () => {
    await desktop.stop()
    await screen.stop()
  })
  afterEach(async () => {
    for (const viewer of viewers.splice(0)) await viewer.stop()
    for (const program of programs.splice(0)) await program.stop()
  })

  async function view(args: readonly string[] = []): Promise<Viewer> {
    const { port, login: user, password } = desktop
    const viewer = await tigerViewer(screen, { port, user, password, types: ['TLSPlain'], args })
    viewers.push(viewer)
    return viewer
  }

  /** Paints the target's screen, and waits until the viewer shows it. */
  async function seen(seed: number): Promise<void> {
    const picture = painting(seed)
    await paint(target, picture)
    await shows(screen.display, (shown) => isWithin(shown, picture))
  }

  async function on(
    display: string,
    program: 'xdotool' | 'xclip',
    args: string[],
    input?: string,
  ): Promise<string> {
    const env = { ...process.env, DISPLAY: display }
    const done = await run(findProgram(program), args, { env, ...(input !== undefined && { input }) })
    if (done.code !== 0) throw new Error(`${program} ${args.join(' ')}: ${done.stderr}`)
    return done.stdout
  }

  /** Focuses a window: there is no window manager. */
  const focus = (display: string, name: string) =>
    until(`a window called ${name}`, () =>
      on(display, 'xdotool', ['search', '--onlyvisible', '--name', name, 'windowfocus']).catch(
        () => undefined,
      ),
    )

  async function program(
    display: string,
    command: string,
    args: string[],
    ready: RegExp | (() => boolean),
  ): Promise<Daemon> {
    const daemon = await startDaemon(command, args, ready, { env: { ...process.env, DISPLAY: display } })
    programs.push(daemon)
    return daemon
  }

  async function ended(viewer: Viewer): Promise<string> {
    const before = (await desktop.closedSessions()).length
    await viewer.stop()
    return (await desktop.closedSessions(before + 1)).at(-1)!.id
  }

  test('is shown as it is, and all of it is recorded', async () => {
    const viewer = await view()
    await seen(1)
    await seen(2)
    const id = await ended(viewer)
    const [row] = await desktop.closedSessions(1)
    expect(row).toMatchObject({ id, user: 'ops1', result: 'success', subprotocols: ['VNC'] })
    const frames = await framesOf(desktop.broker, id)
    expect(fieldsOf(frames, 'channel_open')).toMatchObject([
      { kind: 'vnc', desktop: { width: WIDTH, height: HEIGHT } },
    ])
  })

  describe('in every encoding and depth that the viewer has', () => {
    test.each([
      ['Raw', []],
      ['RRE', []],
      ['Hextile', []],
      ['ZRLE', []],
      ['Tight', ['-CompressLevel', '9']],
    ] as const)('%s', async (encoding, args) => {
      await view(['-PreferredEncoding', encoding, ...args])
      await seen(10 + encoding.length)
      await seen(20 + encoding.length)
    })

    test('with few colours, and in lossy pictures', async () => {
      for (const args of [
        ['-FullColor=0', '-LowColorLevel', '1'],
        ['-NoJPEG=0', '-QualityLevel', '3'],
      ]) {
        const viewer = await view(args)
        // Encodings that cannot be compared must at least cause no error on either side.
        await until('updates', () =>
          desktop.broker
            .must<unknown[]>('GET', '/sessions?status=current')
            .then((rows) => rows.length === 1 || undefined),
        )
        await paint(target, painting(5))
        await paint(target, painting(6))
        await shows(screen.display, (shown) => shown.rgb.some((byte) => byte > 0))
        const id = await ended(viewer)
        expect((await desktop.closedSessions()).find((row) => row.id === id)).toMatchObject({
          result: 'success',
        })
      }
    })
  })

  describe('the clipboard', () => {
    const UP = 'from the viewer: größer'
    const DOWN = 'from the target: grün'

    const pasted = async (display: string): Promise<string> => {
      const env = { ...process.env, DISPLAY: display }
      return (await run(findProgram('xclip'), ['-selection', 'clipboard', '-out'], { env })).stdout
    }
    /** Copies the text, and stays the selection's owner. */
    const copy = async (display: string, text: string): Promise<void> => {
      const line = 'printf %s "$0" | exec xclip -quiet -selection clipboard -in'
      await program(display, 'sh', ['-c', line, text], () => true)
      await until(`${text} on its own display`, async () => (await pasted(display)) === text || undefined)
    }
    const arrives = (display: string, text: string) =>
      until(`${text} on ${display}`, async () => (await pasted(display)) === text || undefined)

    /** Copies on both sides; returns the session after its end. */
    async function copyBoth(check: () => Promise<unknown>): Promise<string> {
      const viewer = await view()
      await seen(4)
      await focus(screen.display, 'TigerVNC')
      await copy(target, DOWN)
      await copy(screen.display, UP)
      await check()
      const id = await ended(viewer)
      for (const program of programs.splice(0)) await program.stop()
      return id
    }

    test('goes both ways, as events with sizes and into the recording with its text', async () => {
      const id = await copyBoth(async () => {
        await arrives(target, UP)
        await copy(target, DOWN)
        await arrives(screen.display, DOWN)
      })
      const events = (await desktop.events('clipboard', 2)).filter(({ session }) => session === id)
      expect(events).toContainEqual(
        expect.objectContaining({ direction: 'up', subprotocol: 'VNC_CLIPBOARD_UP' }),
      )
      expect(events).toContainEqual(expect.objectContaining({ direction: 'down', size: 22 }))
      const texts = fieldsOf(await framesOf(desktop.broker, id), 'clipboard').map(({ text }) => text)
      expect(texts).toEqual(expect.arrayContaining([UP, DOWN]))
      expect(desktop.broker.log()).not.toContain('grün')
    })

    test.each([
      ['VNC_CLIPBOARD_UP', UP, DOWN],
      ['VNC_CLIPBOARD_DOWN', DOWN, UP],
    ])('goes one way with %s alone', async (right, allowed, refused) => {
      await desktop.grant(['VNC', right])
      const [there, elsewhere] = allowed === UP ? [target, screen.display] : [screen.display, target]
      const id = await copyBoth(async () => {
        await copy(elsewhere, refused)
        await until('what is refused', async () => {
          await copy(elsewhere, allowed)
          return (await pasted(there)) === allowed || undefined
        })
        await copy(there, refused)
        // Any data that another session may send both ways would have arrived by now.
        await seen(8)
        expect(await pasted(elsewhere)).toBe(allowed)
      })
      expect((await desktop.closedSessions()).find((row) => row.id === id)?.subprotocols).toEqual([
        'VNC',
        right,
      ])
      await desktop.grant(['VNC', 'VNC_CLIPBOARD_UP', 'VNC_CLIPBOARD_DOWN'])
    })
  })

  test('takes a new size from either side', async () => {
    const viewer = await view(['-RemoteResize=1'])
    await seen(5)
    const size = async () => {
      const { width, height } = await desktop.xvnc!.picture()
      return `${width}x${height}`
    }
    await on(screen.display, 'xdotool', [
      'search',
      '--onlyvisible',
      '--name',
      'TigerVNC',
      'windowsize',
      '400',
      '300',
    ])
    await until('the size of the window', async () => (await size()) === '400x300' || undefined)
    const other = await tigerViewer(screen, {
      port: desktop.xvnc!.port,
      password: desktop.targetPassword,
      types: ['VncAuth'],
      args: ['-DesktopSize', `${WIDTH}x${HEIGHT}`],
    })
    viewers.push(other)
    await until('the old size', async () => (await size()) === `${WIDTH}x${HEIGHT}` || undefined)
    await other.stop()
    await seen(6)
    const frames = await framesOf(desktop.broker, await ended(viewer))
    expect(fieldsOf(frames, 'desktop_size')).toContainEqual({ width: 400, height: 300 })
  })

  test('is chosen from the list, after the notice that it is recorded', async () => {
    await desktop.policy({ session_notice: true })
    await paint(target, painting(7))
    const { port, password } = desktop
    viewers.push(await tigerViewer(screen, { port, user: 'ops1', password, types: ['TLSPlain'] }))
    await focus(screen.display, 'TigerVNC')
    await shows(screen.display, (shown) => shown.rgb.some((byte) => byte !== 0))
    await until('the desktop', async () => {
      await on(screen.display, 'xdotool', ['key', 'Return'])
      return isWithin(await screen.picture(), painting(7)) || undefined
    })
    await desktop.policy({ session_notice: false })
  })

  test('is for viewing only where the policy says so', async () => {
    await desktop.policy({ view_only: true })
    const events = await program(target, findProgram('xev'), ['-root', '-event', 'mouse'], () => true)
    const viewer = await view()
    await seen(9)
    await on(screen.display, 'xdotool', ['mousemove', '100', '100', 'click', '1'])
    await seen(10)
    expect(events.log()).not.toContain('ButtonPress')
    const frames = await framesOf(desktop.broker, await ended(viewer))
    expect(frames.some(({ type }) => type === 'pointer')).toBe(false)
    await desktop.policy({ view_only: false })
    await on(screen.display, 'xdotool', ['mousemove', '639', '479'])
  })

  test('takes no clicks while its input is suspended, and takes them again', async () => {
    const events = await program(target, findProgram('xev'), ['-root', '-event', 'button'], () => true)
    const viewer = await view()
    await seen(12)
    const [running] = await desktop.broker.must<{ id: string }[]>('GET', '/sessions?status=current')
    await focus(screen.display, 'TigerVNC')
    await desktop.broker.must('POST', `/sessions/${running!.id}/suspend`, { reason: 'wait' })
    await on(screen.display, 'xdotool', ['mousemove', '100', '100', 'click', '1'])
    // The picture goes on.
    await seen(13)
    expect(events.log()).not.toContain('ButtonPress')
    await desktop.broker.must('POST', `/sessions/${running!.id}/resume`)
    await on(screen.display, 'xdotool', ['mousemove', '100', '100', 'click', '1'])
    await until('a click', () => /ButtonPress/.test(events.log()) || undefined)
    await on(screen.display, 'xdotool', ['mousemove', '639', '479'])
    await ended(viewer)
  })

  test('that is killed shows why, and closes', async () => {
    await view()
    await seen(11)
    const [running] = await desktop.broker.must<{ id: string }[]>('GET', '/sessions?status=current')
    await desktop.broker.must('POST', `/sessions/${running!.id}/kill`, { reason: 'enough' })
    const words = await shows(screen.display, (shown) => !isWithin(shown, painting(11)))
    // The bar and the panel, not a closed window.
    expect(words.rgb.some((byte) => byte !== 0)).toBe(true)
    const killed = await until('its end', async () =>
      (await desktop.closedSessions()).find(({ id }) => id === running!.id),
    )
    expect(killed).toMatchObject({ result: 'killed' })
    await focus(screen.display, 'TigerVNC')
    await endsBy(viewers[0]!, () => on(screen.display, 'xdotool', ['key', 'Return']))
  })

  // From here on the target draws its pointer into the picture, while the viewer's pointer is elsewhere.
  test('takes what is typed and clicked', async () => {
    const file = join(tmpdir(), `sallyport-typed-${process.pid}`)
    const events = await program(target, findProgram('xev'), ['-root', '-event', 'button'], () => true)
    await view()
    await seen(3)
    await focus(screen.display, 'TigerVNC')
    await on(screen.display, 'xdotool', ['mousemove', '200', '200', 'click', '1'])
    await until('a click', () => /ButtonPress/.test(events.log()) || undefined)
    await program(
      target,
      findProgram('xterm'),
      ['-title', 'shell', '-e', 'sh', '-c', `head -n 1 > ${file}`],
      () => true,
    )
    await focus(target, 'shell')
    await until('the typed line', async () => {
      await on(screen.display, 'xdotool', ['type', '--delay', '20', 'Typed-42'])
      await on(screen.display, 'xdotool', ['key', 'Return'])
      const read = await run('cat', [file])
      return read.stdout.includes('Typed-42\n') || undefined
    })
    rmSync(file)
    const id = await ended(viewers[0]!)
    const frames = await framesOf(desktop.broker, id)
    expect(frames.filter(({ type }) => type === 'key').length).toBeGreaterThan(10)
    expect(frames.filter(({ type }) => type === 'pointer').length).toBeGreaterThan(1)
  })
})
