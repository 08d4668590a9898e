/**
 * Viewers sign in at a whole bastion, which signs in at desktops of every kind: every method, and every
 * refusal.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { callApi } from '../peers/broker.ts'
import { type Browser, startChromium } from '../peers/chromium.ts'
import { describeWithPeers } from '../peers/program.ts'
import {
  cut,
  differingPixels,
  isWithin,
  type Picture,
  paint,
  type Screen,
  shows,
  startScreen,
} from '../peers/screen.ts'
import { canCreateUsers, createSystemUser, type SystemUser } from '../peers/users.ts'
import type { Viewer } from '../peers/viewer.ts'
import { certificateFiles } from '../peers/vnc/certificate.ts'
import { type NoVncSite, startNoVncSite } from '../peers/vnc/novnc.ts'
import {
  startX11vnc,
  startXvnc,
  X11VNC_PEERS,
  XVNC_PEERS,
  type Xvnc,
  type XvncOptions,
  type XvncType,
} from '../peers/vnc/servers.ts'
import {
  GVNC_PEERS,
  gvncCapture,
  REMMINA_PEERS,
  remmina,
  SNAPSHOT_PEERS,
  TIGER_VIEWER_PEERS,
  type TigerOptions,
  tigerViewer,
  vncSnapshot,
} from '../peers/vnc/viewers.ts'
import { until } from '../until.ts'
import { addDesktop } from './desktop-targets.ts'
import { type Desktop, startDesktop } from './desktops.ts'

const [WIDTH, HEIGHT] = [320, 240]
const ANYTHING = /wrong user name, password or ticket/

function painting(): Picture {
  const rgb = Buffer.alloc(WIDTH * HEIGHT * 3)
  for (let at = 0; at < rgb.length; at++) rgb[at] = (at * 7 + Math.floor(at / (WIDTH * 3)) * 13) & 0xff
  return { width: WIDTH, height: HEIGHT, rgb }
}

interface Ticket {
  user: string
  password: string
}

describeWithPeers('sign-in', [...XVNC_PEERS, ...TIGER_VIEWER_PEERS, 'display'], () => {
  let desktop: Desktop
  let screen: Screen
  let user: SystemUser | undefined
  const viewers: Viewer[] = []
  const servers: { stop(): Promise<void> }[] = []

  beforeAll(async () => {
    if (canCreateUsers()) user = await createSystemUser()
    desktop = await startDesktop({ target: { width: WIDTH, height: HEIGHT } })
    await paint(desktop.xvnc!.display, painting())
    screen = await startScreen(640, 480)
  })
  afterEach(async () => {
    for (const viewer of viewers.splice(0)) await viewer.stop()
    for (const server of servers.splice(0)) await server.stop()
  })
  afterAll(async () => {
    await screen?.stop()
    await desktop?.stop()
    await user?.remove()
  })

  const certificate = (): string => join(desktop.broker.dataFolder, 'tls', 'cert.pem')
  const right = () => ({ port: desktop.port, user: desktop.login, password: desktop.password })

  async function view(options: Partial<TigerOptions> = {}): Promise<Viewer> {
    const viewer = await tigerViewer(screen, { ...right(), ca: certificate(), ...options })
    viewers.push(viewer)
    return viewer
  }

  const shown = () => shows(screen.display, (picture) => isWithin(picture, painting()))

  /** Returns a ticket of ops1 for the desktop. */
  async function ticket(): Promise<Ticket> {
    const ca = readFileSync(certificate())
    const { https } = desktop.broker.ports
    const who = { user: 'ops1', password: desktop.password }
    const { headers } = await callApi(https, ca, 'POST', '/session', who)
    const cookie = [headers['set-cookie'] ?? []].flat()[0]!.split(';')[0]!
    const path = `/targets/${encodeURIComponent('screen@local:desk1:vnc')}/ticket`
    const answer = await callApi<Ticket>(https, ca, 'POST', path, { protocol: 'VNC' }, { cookie })
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
    return answer.body
  }

  /** Returns the sign-ins by VNC, newest last, once there are as many. */
  const signIns = (event: 'auth.success' | 'auth.failure', count: number) =>
    until(`${count} events ${event}`, async () => {
      const events = (await desktop.events(event)).filter(({ protocol }) => protocol === 'VNC')
      return events.length >= count ? events : undefined
    })

  describe('by TigerVNC’s viewer', () => {
    test.each([
      ['the bastion’s certificate', 'X509Plain'],
      ['anonymous TLS', 'TLSPlain'],
    ])('with %s', async (_, type) => {
      const before = (await signIns('auth.success', 0)).length
      await view({ types: [type] })
      await shown()
      const event = (await signIns('auth.success', before + 1)).at(-1)
      expect(event).toMatchObject({ user: 'ops1', method: 'password', client_ip: '127.0.0.1' })
    })

    test.each(['VncAuth', 'TLSVnc', 'X509Vnc'])('with a ticket by %s, once', async (type) => {
      const before = (await signIns('auth.success', 0)).length
      const { password } = await ticket()
      const viewer = await view({ types: [type], password })
      await shown()
      const event = (await signIns('auth.success', before + 1)).at(-1)
      expect(event).toMatchObject({ user: 'ops1', method: 'ticket' })
      await viewer.stop()
      const again = await view({ types: [type], password })
      await again.ended
      expect(again.log()).toMatch(ANYTHING)
    })

    test('with a ticket as user name and password', async () => {
      await view({ types: ['X509Plain'], ...(await ticket()) })
      await shown()
    })

    test.each([
      ['a wrong password', { password: 'wrong' }, ANYTHING],
      ['somebody unknown', { user: 'nobody+screen@desk1' }, ANYTHING],
      ['a login that is none', { user: 'ops1+%zz@desk1' }, /USER|login/],
      ['a password where a ticket is asked for', { types: ['VncAuth'] }, ANYTHING],
    ])('not with %s', async (_, login, reason) => {
      const before = (await signIns('auth.failure', 0)).length
      const viewer = await view({ types: ['TLSPlain'], ...login })
      await viewer.ended
      expect(viewer.log()).toMatch(reason)
      expect((await signIns('auth.failure', before + 1)).length).toBe(before + 1)
    })
  })

  test('a viewer that does not believe the certificate sends nothing', async () => {
    const other = await certificateFiles()
    const before = (await signIns('auth.failure', 0)).length
    const viewer = await view({ types: ['X509Plain'], ca: other.cert })
    // The viewer's prompt, which stays unanswered.
    await shows(screen.display, (picture) => picture.rgb.some((byte) => byte !== 0))
    expect(viewer.log()).toContain('X509Plain')
    expect(await signIns('auth.failure', 0)).toHaveLength(before)
    other.remove()
  })

  describeWithPeers('by gtk-vnc', GVNC_PEERS, () => {
    test.runIf(canCreateUsers())('with the bastion’s certificate', async () => {
      const { picture, said } = await gvncCapture(right(), { as: { user: user!, ca: certificate() } })
      expect(said).toContain('Saved display')
      expect(picture).toMatchObject({ width: WIDTH, height: HEIGHT })
    })
  })

  describeWithPeers('by vncsnapshot', SNAPSHOT_PEERS, () => {
    test('with a ticket, by version 3.3', async () => {
      const { picture } = await vncSnapshot({ port: desktop.port, password: (await ticket()).password })
      expect(picture).toMatchObject({ width: WIDTH, height: HEIGHT })
    })
  })

  describeWithPeers('by Remmina', REMMINA_PEERS, () => {
    test('with anonymous TLS, which is all that is offered', async () => {
      const options = { target: { width: WIDTH, height: HEIGHT } }
      const other = await startDesktop({ ...options, broker: { vnc: { security_types: ['tlsplain'] } } })
      await paint(other.xvnc!.display, painting())
      const { port, login, password } = other
      const viewer = await remmina(screen, { port, user: login, password })
      viewers.push(viewer)
      // The window shows only a part of it.
      const part = cut(painting(), 0, 0, 100, 100)
      await shows(screen.display, (picture) => isWithin(picture, part))
      await viewer.stop()
      await other.stop()
    })
  })

  describeWithPeers('by noVNC in Chromium', ['chromium'], () => {
    let browser: Browser
    let site: NoVncSite
    beforeAll(async () => {
      browser = await startChromium()
      site = await startNoVncSite()
    })
    afterAll(async () => {
      site?.stop()
      await browser?.stop()
    })

    test.each([
      ['by user name and password in clear text', [19, 256], right],
      ['by Apple’s Diffie-Hellman', [30], right],
      ['by VNC authentication, with a ticket', [2], ticket],
    ] as const)('%s', async (_, types, login) => {
      const viewer = await site.open(browser, { ...right(), ...(await login()), types })
      await until('the sign-in', async () => ((await viewer.told()).includes('connect') ? true : undefined))
      await until('the picture', async () =>
        differingPixels(await viewer.picture(), painting()) === 0 ? true : undefined,
      )
      await viewer.disconnect()
    })

    test('is told why a wrong password does not do', async () => {
      const viewer = await site.open(browser, { ...right(), password: 'wrong' })
      const told = await until('the refusal', async () =>
        (await viewer.told()).find((line) => line.startsWith('securityfailure')),
      )
      expect(told).toMatch(ANYTHING)
    })
  })

  describe('at a target', () => {
    interface TargetOptions {
      name: string
      port: number
      types: string[]
      account?: string
      password: string
    }

    /** Adds a target that ops1 may open. Returns the login string. */
    async function target({ types, account = 'screen', ...options }: TargetOptions): Promise<string> {
      const { login } = await addDesktop(desktop.broker, {
        ...options,
        protocol: 'VNC',
        account,
        subprotocols: ['VNC'],
        policy: { security_types: types },
      })
      return login
    }

    async function server(types: XvncType[], more: Partial<XvncOptions> = {}): Promise<Xvnc> {
      const started = await startXvnc({ types, password: 'Xvnc-pw1', width: WIDTH, height: HEIGHT, ...more })
      servers.push(started)
      await paint(started.display, painting())
      return started
    }

    const lastSession = async (count: number) => (await desktop.closedSessions(count)).at(-1)

    test.runIf(canCreateUsers())('as a user of its system, within TLS', async () => {
      const { port } = await server(['TLSPlain'])
      const { name, password } = user!
      const login = await target({ name: 'system', port, types: ['tlsplain'], account: name, password })
      await view({ user: login, types: ['TLSPlain'] })
      await shown()
    })

    test('whose certificate is pinned at first sight, and whose other one is refused', async () => {
      const [first, second] = [await certificateFiles(), await certificateFiles()]
      const before = await server(['X509Vnc'], { certificate: first })
      const login = await target({
        name: 'pinned',
        port: before.port,
        types: ['x509vnc'],
        password: 'Xvnc-pw1',
      })
      const viewer = await view({ user: login, types: ['TLSPlain'] })
      await shown()
      expect((await desktop.events('hostkey.new', 1)).at(-1)).toMatchObject({
        device: 'pinned',
        result: 'pinned',
      })
      const sessions = (await desktop.closedSessions()).length
      await viewer.stop()
      await desktop.closedSessions(sessions + 1)
      const after = await server(['X509Vnc'], { certificate: second })
      await desktop.broker.must('PUT', '/devices/pinned/services/vnc', { port: after.port })
      await view({ user: login, types: ['TLSPlain'] })
      expect((await desktop.events('hostkey.changed', 1)).at(-1)).toMatchObject({ device: 'pinned' })
      const { result, reason } = (await lastSession(sessions + 2))!
      expect(result).toBe('failure')
      expect(reason).toMatch(/has changed/)
      first.remove()
      second.remove()
    })

    test('that does not take the stored password: the reason is in the log, and the password is not', async () => {
      const { port } = await server(['VncAuth'])
      const login = await target({ name: 'wrong', port, types: ['vncauth'], password: 'canary-7' })
      const sessions = (await desktop.closedSessions()).length
      await view({ user: login, types: ['TLSPlain'] })
      const row = (await lastSession(sessions + 1))!
      expect(row.reason).toMatch(/refused the sign-in by vncauth: it did not take the credential/)
      expect(desktop.broker.log()).not.toContain('canary-7')
    })

    test('that offers nothing which the policy allows: what it has is in the log', async () => {
      const { port } = await server(['None'])
      const login = await target({
        name: 'open',
        port,
        types: ['x509plain', 'vncauth'],
        password: 'Xvnc-pw1',
      })
      const sessions = (await desktop.closedSessions()).length
      await view({ user: login, types: ['TLSPlain'] })
      expect((await lastSession(sessions + 1))!.reason).toMatch(
        /the connection policy allows .*: it has none/,
      )
    })

    describeWithPeers('of x11vnc', X11VNC_PEERS, () => {
      test('on its display', async () => {
        const { port } = await startX11vnc(desktop.xvnc!.display, { password: 'Xvnc-pw1' }).then(
          (started) => {
            servers.push(started)
            return started
          },
        )
        const login = await target({ name: 'x11', port, types: ['vncauth'], password: 'Xvnc-pw1' })
        await view({ user: login, types: ['TLSPlain'] })
        await shown()
      })
    })
  })
})
