/**
 * Guests in a running desktop session: a real viewer each, with their view, their rights and their events.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Daemon, run, startDaemon } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import {
  isWithin,
  type Picture,
  paint,
  pictureOf,
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
import { fieldsOf, framesOf } from './recorded.ts'

const WIDTH = 320
const HEIGHT = 240

interface Ticket {
  user: string
  password: string
  invitation: { id: string; name: string; mode: string }
}

/** Noise and flat parts. */
function painting(seed: number): Picture {
  const rgb = Buffer.alloc(WIDTH * HEIGHT * 3)
  let state = seed
  for (let at = 0; at < WIDTH * HEIGHT; at++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    rgb.writeUIntBE((at % WIDTH < 200 ? state >> 7 : 0x203040 * seed) & 0xffffff, 3 * at, 3)
  }
  return { width: WIDTH, height: HEIGHT, rgb }
}

describeWithPeers('guests', [...XVNC_PEERS, ...TIGER_VIEWER_PEERS, ...SCREEN_PEERS, 'xdotool', 'xev'], () => {
  let desktop: Desktop
  let own: Screen
  let theirs: Screen
  const viewers: Viewer[] = []
  const programs: Daemon[] = []

  beforeAll(async () => {
    ;[desktop, own, theirs] = await Promise.all([
      startDesktop({ target: { width: WIDTH, height: HEIGHT }, policy: { mask_keys: false } }),
      startScreen(640, 480),
      startScreen(640, 480),
    ])
  })
  afterAll(async () => {
    await desktop.stop()
    await own.stop()
    await theirs.stop()
  })
  afterEach(async () => {
    for (const viewer of viewers.splice(0)) await viewer.stop()
    for (const program of programs.splice(0)) await program.stop()
  })

  /** Opens the owner's session; returns its id. */
  async function begin(seed: number, args: readonly string[] = []): Promise<string> {
    const { port, login: user, password } = desktop
    viewers.push(await tigerViewer(own, { port, user, password, types: ['TLSPlain'], args }))
    await painted(seed, own)
    const [session] = await desktop.broker.must<{ id: string }[]>('GET', '/sessions?status=current')
    return session!.id
  }

  const invite = (session: string, mode: 'view' | 'control', more: object = {}) =>
    desktop.broker.must<Ticket>('POST', `/sessions/${session}/invitations`, {
      mode,
      duration: 600,
      name: 'Bob',
      ...more,
    })

  /**
   * Starts a guest's viewer: by user and password, or by the password alone as in classic VNC authentication.
   */
  async function enter(
    { user, password }: Ticket,
    types = ['TLSPlain'],
    args: string[] = [],
  ): Promise<Viewer> {
    const viewer = await tigerViewer(theirs, { port: desktop.port, user, password, types, args })
    viewers.push(viewer)
    return viewer
  }

  async function painted(seed: number, ...screens: Screen[]): Promise<void> {
    const picture = painting(seed)
    await paint(desktop.xvnc!.display, picture)
    for (const screen of screens) await shows(screen.display, (shown) => isWithin(shown, picture))
  }

  const on = (display: string, ...args: string[]) =>
    run(findProgram('xdotool'), args, { env: { ...process.env, DISPLAY: display } })

  const isIn = async (session: string, count: number) =>
    await until(`${count} guests in`, async () => {
      const path = `/sessions/${session}/invitations`
      const all = await desktop.broker.must<{ is_in: boolean }[]>('GET', path)
      return all.filter(({ is_in: isThere }) => isThere).length === count ? true : undefined
    })

  test('sees what the owner sees, whatever the owner had before, and the owner goes on as before', async () => {
    const session = await begin(1, ['-PreferredEncoding', 'ZRLE'])
    await painted(2, own)
    const ticket = await invite(session, 'view')
    const guest = await enter(ticket)
    await shows(theirs.display, (shown) => isWithin(shown, painting(2)))
    await painted(3, own, theirs)
    const [join] = await desktop.events('session.guest_join', 1)
    expect(join).toMatchObject({
      session,
      object: 'Bob',
      object_type: 'guest',
      method: 'view',
      device: 'desk1',
    })
    await guest.stop()
    await isIn(session, 0)
    await painted(4, own)
    await desktop.events('session.guest_leave', 1)
  })

  test('in eight colours, by classic VNC authentication', async () => {
    const session = await begin(5)
    await enter(await invite(session, 'view'), ['VncAuth'], ['-FullColour=0', '-LowColourLevel=1'])
    await isIn(session, 1)
    const flat = { width: WIDTH, height: HEIGHT, rgb: Buffer.alloc(WIDTH * HEIGHT * 3, 0xff) }
    await paint(desktop.xvnc!.display, flat)
    await shows(theirs.display, (shown) => isWithin(shown, flat))
  })

  test('a ticket is good once, for its session only, and not after it was withdrawn', async () => {
    const session = await begin(6)
    const ticket = await invite(session, 'view')
    await enter(ticket)
    await isIn(session, 1)
    const again = await enter(ticket)
    await until('a refusal', () => (/authentication|failed|denied/i.test(again.log()) ? true : undefined))
    const other = await invite(session, 'view', { name: 'Carol' })
    await desktop.broker.must('DELETE', `/sessions/${session}/invitations/${other.invitation.id}`)
    const late = await enter(other)
    await until('a refusal', () => (/authentication|failed|denied/i.test(late.log()) ? true : undefined))
    await isIn(session, 1)
  })

  test('who may only look types nothing; with control they do, until it is taken back', async () => {
    const session = await begin(7)
    const xev = await startDaemon(findProgram('xev'), ['-geometry', '320x240+0+0'], /PropertyNotify|Expose/, {
      env: { ...process.env, DISPLAY: desktop.xvnc!.display },
    })
    programs.push(xev)
    const presses = (key: string) =>
      xev.log().match(new RegExp(`KeyPress[^]{0,200}keysym 0x[0-9a-f]+, ${key}\\)`, 'g'))?.length ?? 0
    const ticket = await invite(session, 'control')
    await enter(ticket)
    await isIn(session, 1)
    const path = `/sessions/${session}/invitations/${ticket.invitation.id}`
    const typed = async (display: string, key: string) => {
      await on(display, 'search', '--name', 'TigerVNC', 'windowfocus', 'mousemove', '320', '240')
      await on(display, 'key', key)
    }
    await until('a key of the guest', async () => {
      await typed(theirs.display, 'a')
      return presses('a') > 0 ? true : undefined
    })
    await until('the name of the guest in the title', async () => {
      const { stdout } = await on(own.display, 'search', '--name', 'with Bob \\(control\\)')
      return stdout.trim() === '' ? undefined : true
    })
    await desktop.broker.must('PUT', path, { mode: 'view' })
    await typed(theirs.display, 'b')
    await until('a key of the owner', async () => {
      await typed(own.display, 'c')
      return presses('c') > 0 ? true : undefined
    })
    expect(presses('b')).toBe(0)
    await desktop.broker.must('PUT', path, { mode: 'control' })
    await until('another key of the guest', async () => {
      await typed(theirs.display, 'd')
      return presses('d') > 0 ? true : undefined
    })
    await viewers[0]!.stop()
    await until('its end', async () =>
      (await desktop.closedSessions()).some(({ id }) => id === session) ? true : undefined,
    )
    const frames = await framesOf(desktop.broker, session)
    expect(fieldsOf(frames, 'participant')).toMatchObject([
      { participant: 1, name: 'Bob', what: 'joined', mode: 'control' },
      { participant: 1, what: 'gave_control', mode: 'view' },
      { participant: 1, what: 'took_control', mode: 'control' },
      { participant: 1, what: 'left' },
    ])
    expect(fieldsOf(frames, 'key').some((key) => (key as { participant?: number }).participant === 1)).toBe(
      true,
    )
  })

  test('is thrown out with the reason on their screen; ends with the session', async () => {
    const session = await begin(8)
    const ticket = await invite(session, 'view')
    await enter(ticket)
    await shows(theirs.display, (shown) => isWithin(shown, painting(8)))
    await desktop.broker.must('DELETE', `/sessions/${session}/invitations/${ticket.invitation.id}`)
    await shows(theirs.display, (shown) => !isWithin(shown, painting(8)))
    await painted(9, own)
    expect(isWithin(await pictureOf(theirs.display), painting(9))).toBe(false)
    await viewers.pop()!.stop()
    await isIn(session, 0)

    const second = await enter(await invite(session, 'view'))
    await isIn(session, 1)
    await viewers[0]!.stop()
    await desktop.events('session.guest_leave', 2).catch(() => undefined)
    await second.stop()
    expect(await desktop.closedSessions(1)).not.toHaveLength(0)
  })
})
