/** Real viewers sign in at the front, and see a desktop behind it; the relay and the gate are the simplest there are. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Browser, startChromium } from '../../peers/chromium.ts'
import { describeWithPeers } from '../../peers/program.ts'
import { differingPixels, type Picture, paint, type Screen, shows, startScreen } from '../../peers/screen.ts'
import { canCreateUsers, createSystemUser, type SystemUser } from '../../peers/users.ts'
import { type CertificateFiles, certificateFiles } from '../../peers/vnc/certificate.ts'
import { type NoVnc, type NoVncOptions, type NoVncSite, startNoVncSite } from '../../peers/vnc/novnc.ts'
import { startXvnc, XVNC_PEERS, type Xvnc } from '../../peers/vnc/servers.ts'
import {
  GVNC_PEERS,
  gvncCapture,
  SNAPSHOT_PEERS,
  TIGER_VIEWER_PEERS,
  tigerViewer,
  vncSnapshot,
} from '../../peers/vnc/viewers.ts'
import { until } from '../../until.ts'
import { type Bridge, LOGIN, PASSWORD, startBridge, TICKET } from './bridge.ts'

const [WIDTH, HEIGHT] = [320, 200]

function gradient(): Picture {
  const rgb = Buffer.alloc(WIDTH * HEIGHT * 3)
  for (let at = 0; at < rgb.length; at++) rgb[at] = (at * 7 + Math.floor(at / (WIDTH * 3)) * 13) & 0xff
  return { width: WIDTH, height: HEIGHT, rgb }
}

const isWithin = (seen: Picture): boolean => seen.rgb.includes(gradient().rgb.subarray(0, WIDTH * 3))

describeWithPeers('with an Xtigervnc behind it', [...XVNC_PEERS, 'display'], () => {
  let target: Xvnc
  let certificate: CertificateFiles
  let bridge: Bridge
  let user: SystemUser | undefined

  beforeAll(async () => {
    certificate = await certificateFiles()
    if (canCreateUsers()) user = await createSystemUser()
    target = await startXvnc({ types: ['None'], width: WIDTH, height: HEIGHT })
    await paint(target.display, gradient())
    bridge = await startBridge({ target: target.port, certificate })
  })
  beforeEach(() => {
    bridge.viewers.length = 0
    bridge.asked.length = 0
  })
  afterAll(async () => {
    bridge?.stop()
    await target?.stop()
    await user?.remove()
    certificate?.remove()
  })

  const right = () => ({ port: bridge.port, user: LOGIN, password: PASSWORD })
  const came = () => bridge.viewers.map(({ security, version }) => `${security} ${version}`)

  describeWithPeers('xtigervncviewer', TIGER_VIEWER_PEERS, () => {
    let screen: Screen
    beforeAll(async () => {
      screen = await startScreen()
    })
    afterAll(async () => await screen?.stop())

    test.each([
      ['x509plain', undefined],
      ['x509plain', ['X509Plain']],
      ['tlsplain', ['TLSPlain']],
    ] as const)('signs in by %s', async (security, types) => {
      const viewer = await tigerViewer(screen, { ...right(), ca: certificate.cert, ...(types && { types }) })
      await shows(screen.display, isWithin)
      expect(came()).toEqual([`${security} 3.8`])
      expect(bridge.viewers[0]).toMatchObject({ isShared: false, identity: { user: 'ops1' } })
      await viewer.stop()
    })

    test.each([
      ['vncauth', ['VncAuth']],
      ['tlsvnc', ['TLSVnc']],
      ['x509vnc', ['X509Vnc']],
    ] as const)('signs in with a ticket by %s', async (security, types) => {
      const login = { port: bridge.port, password: TICKET, ca: certificate.cert, types }
      const viewer = await tigerViewer(screen, { ...login, args: ['-Shared'] })
      await shows(screen.display, isWithin)
      expect(came()).toEqual([`${security} 3.8`])
      expect(bridge.viewers[0]!.isShared).toBe(true)
      await viewer.stop()
    })

    test.each([
      ['a wrong password', { password: 'wrong' }, /wrong user name, password or ticket/],
      ['an unknown user', { user: 'nobody%web1' }, /wrong user name, password or ticket/],
      ['a malformed login', { user: 'what?' }, /a login is USER%TARGET/],
      ['a ticket that is none', { types: ['VncAuth'] }, /wrong user name, password or ticket/],
    ])('is told why %s does not do', async (_, login, reason) => {
      const viewer = await tigerViewer(screen, { ...right(), types: ['TLSPlain'], ...login })
      await viewer.ended
      expect(viewer.log()).toMatch(reason)
      expect(came()).toEqual([])
      await viewer.stop()
    })

    test('does not believe a certificate that it does not know, and sends nothing', async () => {
      const other = await certificateFiles()
      const viewer = await tigerViewer(screen, { ...right(), ca: other.cert, types: ['X509Plain'] })
      await viewer.ended
      expect(viewer.log()).toContain('Invalid status of server certificate')
      expect(bridge.asked).toEqual([])
      await viewer.stop()
      other.remove()
    })
  })

  describeWithPeers('vncsnapshot', SNAPSHOT_PEERS, () => {
    test('signs in with a ticket, by version 3.3', async () => {
      const { picture, said } = await vncSnapshot({ port: bridge.port, password: TICKET })
      expect(said).toContain('VNC authentication succeeded')
      expect(picture).toMatchObject({ width: WIDTH, height: HEIGHT })
      expect(came()).toEqual(['vncauth 3.3'])
    })
  })

  describeWithPeers('gvnccapture', GVNC_PEERS, () => {
    test.runIf(canCreateUsers())('signs in by x509plain where it knows the certificate', async () => {
      const { picture } = await gvncCapture(right(), { as: { user: user!, ca: certificate.cert } })
      expect(differingPixels(picture!, gradient())).toBe(0)
      expect(came()).toEqual(['x509plain 3.8'])
    })
  })

  describeWithPeers('noVNC in Chromium', ['chromium'], () => {
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

    async function opened(options: Partial<NoVncOptions>): Promise<NoVnc> {
      return await site.open(browser, { ...right(), ...options })
    }

    async function tells(viewer: NoVnc, what: RegExp): Promise<void> {
      await until(`${what}`, async () => (await viewer.told()).find((line) => what.test(line)))
    }

    describe.each([
      ['plain', [19, 256]],
      ['apple_dh', [30]],
      ['vncauth', [2]],
    ] as const)('by %s', (security, types) => {
      test('shows the desktop pixel by pixel', async () => {
        const viewer = await opened({ types, ...(security === 'vncauth' && { password: TICKET }) })
        await tells(viewer, /^connect/)
        await until('the picture', async () =>
          differingPixels(await viewer.picture(), gradient()) === 0 ? true : undefined,
        )
        expect(came()).toEqual([`${security} 3.8`])
        await viewer.disconnect()
      })

      test('is told why a wrong password does not do', async () => {
        const viewer = await opened({ types, password: 'wrong' })
        await tells(viewer, /^securityfailure wrong user name, password or ticket/)
        expect(came()).toEqual([])
      })
    })
  })
})
