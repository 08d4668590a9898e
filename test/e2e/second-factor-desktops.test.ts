/**
 * Questions of the bastion's own desktop in viewers of VNC and clients of RDP: one-time codes, and a sign-in in a browser, which
 * the QR code opens.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Browser, type Page } from '../peers/oidc/browser.ts'
import { CLIENT_SECRET, type LoginProvider, startLogins } from '../peers/oidc/logins.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
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
import { qrText } from '../peers/zbar.ts'
import { until } from '../until.ts'
import { addDesktop } from './desktop-targets.ts'
import { type Desktop, startDesktop } from './desktops.ts'
import { codesOf, type Enrolled, enrol } from './enrolment.ts'
import { textOf } from './shown-text.ts'

const [WIDTH, HEIGHT] = [320, 240]
const VIEWERS = [...XVNC_PEERS, ...TIGER_VIEWER_PEERS, ...RDP_VIEWER_PEERS, ...SCREEN_PEERS]

describeWithPeers('a one-time code', [...VIEWERS, 'xdotool', 'oathtool', 'zbarimg'], () => {
  let desktop: Desktop
  let screen: Screen
  let factor: Enrolled
  const viewers: Viewer[] = []

  beforeAll(async () => {
    desktop = await startDesktop({
      target: { width: WIDTH, height: HEIGHT },
      broker: { rdp: {}, config: { hostname: 'localhost' } },
    })
    const { broker, password } = desktop
    factor = await enrol(broker, 'ops1', password)
    const far = { name: 'win1', protocol: 'RDP', port: 1, account: 'root', password: 'unused' } as const
    await addDesktop(broker, { ...far, subprotocols: ['RDP'] })
    screen = await startScreen(1100, 800)
  })
  afterAll(async () => {
    await desktop.stop()
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
  const enter = async (text: string) => {
    await xdotool('type', '--delay', '20', text)
    await xdotool('key', 'Return')
  }
  const reads = (words: string, scale: number) =>
    shows(screen.display, (picture) => textOf(picture, scale).includes(words))
  const tiger = async (more: { password?: string } = {}) => {
    const { port, login: user, password } = desktop
    const viewer = await keep(tigerViewer(screen, { port, user, password, types: ['TLSPlain'], ...more }))
    return viewer
  }
  const focus = () =>
    until('the window', async () => {
      const found = await xdotool('search', '--onlyvisible', '--name', 'TigerVNC', 'windowfocus')
      return found.code === 0 || undefined
    })
  const lastOf = async (event: 'auth.success' | 'auth.failure', protocol: string) =>
    await until(`${event} over ${protocol}`, async () =>
      (await desktop.events(event)).filter((one) => one['protocol'] === protocol).at(-1),
    )

  test('is typed into a viewer of VNC, which has its target then', async () => {
    await tiger()
    await focus()
    await reads('One-time code', 2)
    expect(await desktop.events('session.open')).toEqual([])
    await enter(await factor.newCode())
    const rgb = Buffer.alloc(WIDTH * HEIGHT * 3)
    for (let at = 0; at < rgb.length; at++) rgb[at] = (at >> 5) * 37
    const picture: Picture = { width: WIDTH, height: HEIGHT, rgb }
    await paint(desktop.xvnc!.display, picture)
    await shows(screen.display, (shown) => isWithin(shown, picture))
    expect(await lastOf('auth.success', 'VNC')).toMatchObject({ user: 'ops1', client_ip: '127.0.0.1' })
  })

  test('that is wrong is said on the screen of VNC, and ends it; so does a wrong password before it', async () => {
    const viewer = await tiger()
    await focus()
    await reads('One-time code', 2)
    await enter('000000')
    await reads('wrong user name, password or ticket', 2)
    expect(await lastOf('auth.failure', 'VNC')).toMatchObject({ user: 'ops1', reason: 'wrong_code' })
    await endsBy(viewer, () => xdotool('key', 'Return'))
    const other = await tiger({ password: 'wrong' })
    await other.ended
    expect(other.log()).toContain('wrong user name, password or ticket')
  })

  test('is enrolled by the QR code on the screen, where a group requires one', async () => {
    const { broker } = desktop
    await broker.must('DELETE', '/users/ops1/totp')
    const [group] = await broker.must<{ id: string }[]>('GET', '/usergroups')
    await broker.must('PUT', `/usergroups/${group!.id}`, { second_factor: 'required' })
    await tiger()
    await focus()
    await reads('First code', 2)
    const uri = await qrText(await screen.picture())
    const newCode = codesOf(new URL(uri!).searchParams.get('secret')!)
    await enter(await newCode())
    await reads('Note them down', 2)
    await enter('')
    expect((await desktop.events('factor.enrol', 2)).at(-1)).toMatchObject({ user: 'ops1', object: 'ops1' })
    await broker.must('PUT', `/usergroups/${group!.id}`, { second_factor: 'none' })
    await broker.must('DELETE', '/users/ops1/totp')
    factor = await enrol(broker, 'ops1', desktop.password)
  })

  test('is asked for on the list of RDP, by the authorization of the target that was chosen', async () => {
    const { broker, password } = desktop
    const [group] = await broker.must<{ id: string }[]>('GET', '/usergroups')
    const all = await broker.must<{ id: string; target_group: string }[]>('GET', '/authorizations')
    await broker.must('PUT', `/usergroups/${group!.id}`, {
      second_factor: 'required',
      second_factor_remember: 600,
    })
    for (const { id } of all) await broker.must('PUT', `/authorizations/${id}`, { second_factor: 'required' })
    const size = { width: 800, height: 600 }
    const rdp = () => xfreerdp(screen, { port: broker.ports.rdp!, user: 'ops1', password }, [], size)
    const first = await keep(rdp())
    await reads('One-time code', 1)
    await enter(await factor.newCode())
    await reads('win1', 1)
    await first.stop()
    await keep(rdp())
    await reads('win1', 1)
    await enter('')
    await reads('needs a second factor', 1)
    await enter(factor.recovery.pop()!)
    await reads('cannot connect', 1)
    expect((await desktop.events('factor.proved')).at(-1)).toMatchObject({ user: 'ops1', protocol: 'RDP' })
    for (const { id } of all) await broker.must('PUT', `/authorizations/${id}`, { second_factor: 'none' })
    await broker.must('PUT', `/usergroups/${group!.id}`, { second_factor: 'none', second_factor_remember: 0 })
  })

  test('is typed into the form of RDP', async () => {
    const { broker, password } = desktop
    const size = { width: 800, height: 600 }
    await keep(xfreerdp(screen, { port: broker.ports.rdp!, user: 'ops1', password }, [], size))
    await reads('One-time code', 1)
    await enter(factor.recovery[0]!)
    await reads('win1', 1)
    expect(await lastOf('auth.success', 'RDP')).toMatchObject({ user: 'ops1' })
    expect((await desktop.events('factor.recovery', 1)).at(-1)).toMatchObject({
      user: 'ops1',
      protocol: 'RDP',
    })
  })

  describe('a person of a provider', () => {
    let peer: LoginProvider
    let browser: Browser

    beforeAll(async () => {
      const { broker } = desktop
      const site = `https://localhost:${broker.ports.https}`
      const redirect_uris = [`${site}/signin/oidc/login/callback`]
      peer = await startLogins([{ client_id: 'bastion', redirect_uris }])
      peer.persons.set('u1', { name: 'alice', groups: ['ops'] })
      const own = readFileSync(join(broker.dataFolder, 'tls', 'cert.pem'), 'utf8')
      browser = new Browser((origin) => (origin === site ? own : peer.ca))
      const oidc = { issuer: peer.issuer, client_id: 'bastion', user_claim: 'preferred_username' }
      await broker.must('POST', '/externalauths', {
        ...{ authentication_name: 'login', type: 'OIDC', timeout: 60, client_secret: CLIENT_SECRET },
        oidc: { ...oidc, ca_certificates: peer.ca },
      })
      await broker.must('POST', '/authdomains', {
        ...{ domain_name: 'corp', type: 'OIDC', external_auths: ['login'] },
      })
      const [group] = await broker.must<{ group_name: string }[]>('GET', '/usergroups')
      await broker.must('POST', '/authdomains/corp/mappings', {
        ...{ user_group: group!.group_name, external_group: 'ops' },
      })
    })
    afterAll(() => peer?.stop())

    /** Reads the link from the screen, and opens it. */
    const scan = async (): Promise<Page> => {
      const link = await until('a QR code', async () => await qrText(await screen.picture()))
      expect(link).toMatch(/^https:\/\/localhost:\d+\/s\/[2-9A-Z]{4}-[2-9A-Z]{4}$/)
      const page = await browser.open(new URL(link), 'nowhere:')
      const [, way] = /href="(\/signin\/oidc\/login[^"]*)"/.exec(page.text) ?? []
      if (way === undefined) return page
      const callback = `${page.url.origin}/signin/oidc/login/callback`
      const begin = new URL(way.replaceAll('&amp;', '&'), page.url)
      return await browser.open(await peer.signIn(browser, begin, 'u1', callback), 'nowhere:')
    }
    /** Confirms what the page shows, if the screen shows the same. */
    const confirm = async (page: Page, protocol: string, scale: number) => {
      const [, check = ''] = /<p class="check">([2-9A-Z]{3})<\/p>/.exec(page.text) ?? []
      expect(page.text).toContain(`<dd>${protocol}</dd>`)
      await reads(check, scale)
      const done = await browser.submit(page, { decision: 'confirm' }, 'nowhere:')
      expect(done.text).toContain('It is signed in')
    }

    test('scans the QR code of a VNC viewer, which has its target then', async () => {
      const { port, login } = desktop
      const user = login.replace('ops1', 'alice@corp')
      const open = () => keep(tigerViewer(screen, { port, user, password: 'any', types: ['TLSPlain'] }))
      const left = await open()
      await focus()
      const page = await scan()
      await endsBy(left, () => xdotool('key', 'Escape'))
      await until('the end of the waiting', async () => {
        const { status } = await browser.open(page.url, 'nowhere:')
        return status === 404 || undefined
      })
      await open()
      await confirm(await scan(), 'VNC', 2)
      const picture = { width: WIDTH, height: HEIGHT, rgb: Buffer.alloc(WIDTH * HEIGHT * 3, 0x7b) }
      await paint(desktop.xvnc!.display, picture)
      await shows(screen.display, (shown) => isWithin(shown, picture))
      expect(await lastOf('auth.success', 'VNC')).toMatchObject({ user: 'alice@corp', method: 'browser' })
    })

    test('scans the QR code of an RDP client, which has its list then', async () => {
      const { broker } = desktop
      const size = { width: 800, height: 600 }
      await keep(xfreerdp(screen, { port: broker.ports.rdp!, user: 'alice@corp', password: 'any' }, [], size))
      await confirm(await scan(), 'RDP', 1)
      await reads('win1', 1)
      expect(await lastOf('auth.success', 'RDP')).toMatchObject({ user: 'alice@corp', method: 'browser' })
    })
  })
})
