/**
 * Users sign in over RDP at a whole bastion, which signs in at targets: every method, and the error for each
 * refusal.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { SHADOW_PEERS } from '../peers/rdp/shadow.ts'
import {
  RDESKTOP_PEERS,
  RDP_VIEWER_PEERS,
  REMMINA_RDP_PEERS,
  rdesktop,
  remminaRdp,
  xfreerdp,
} from '../peers/rdp/viewers.ts'
import { XRDP_PEERS } from '../peers/rdp/xrdp.ts'
import { cut, isWithin, type Picture, SCREEN_PEERS, shows } from '../peers/screen.ts'
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

const [WIDTH, HEIGHT] = [800, 600]

function painting(): Picture {
  const rgb = Buffer.alloc(WIDTH * HEIGHT * 3)
  for (let at = 0; at < rgb.length; at++) rgb[at] = (at * 7 + (at >> 8) * 13) & 0x80 ? 0xff : 0
  return { width: WIDTH, height: HEIGHT, rgb }
}

/** Below the line that lists missing rights, and where Remmina's window has room. */
const PART = cut(painting(), 300, 200, 100, 100)

describeWithPeers('sign-in over RDP', [...RDP_VIEWER_PEERS, ...SCREEN_PEERS, ...SHADOW_PEERS], () => {
  let desktop: RdpDesktop
  let seat: Seat
  let shadow: ShadowTarget
  let reach: ReachableDesktop

  beforeAll(async () => {
    desktop = await startRdpDesktop()
    seat = await startSeat(desktop, { width: WIDTH, height: HEIGHT })
    shadow = await startShadowTarget('nla', { width: WIDTH, height: HEIGHT })
    await shadow.paint(painting())
    const { port, account, password } = shadow
    reach = await desktop.add({ name: 'win1', port, account, password })
  })
  afterEach(async () => {
    await seat.clear()
  })
  afterAll(async () => {
    await seat.stop()
    await desktop.stop()
    await shadow.stop()
  })

  const shown = () => shows(seat.screen.display, (seen) => isWithin(seen, PART))
  /** Returns a screen that the bastion draws, once it no longer changes. */
  const drawn = async (): Promise<Picture> => {
    const { display } = seat.screen
    let last = await shows(display, ({ rgb }) => rgb.some((byte) => byte !== 0))
    return await shows(display, (now) => {
      const isStill = now.rgb.equals(last.rgb)
      last = now
      return isStill
    })
  }
  const changedFrom = (before: Picture) => shows(seat.screen.display, ({ rgb }) => !rgb.equals(before.rgb))
  const signIns = async (event: 'auth.success' | 'auth.failure', count: number) =>
    await until(`${count} ${event}`, async () => {
      const found = (await desktop.events(event)).filter(({ protocol }) => protocol === 'RDP')
      return found.length >= count ? found : undefined
    })
  const closed = async (before: number) => (await desktop.closedSessions(before + 1)).at(-1)!

  describe('by what the client sends', () => {
    test('xfreerdp, after the notice that it is recorded', async () => {
      await reach.policy({ session_notice: true })
      const before = (await signIns('auth.success', 0)).length
      await seat.view(reach.login)
      await shown()
      await reach.policy({ session_notice: false })
      const event = (await signIns('auth.success', before + 1)).at(-1)
      expect(event).toMatchObject({ user: 'ops1', method: 'password', client_ip: '127.0.0.1' })
    })

    describeWithPeers('Remmina', REMMINA_RDP_PEERS, () => {
      test('with a profile', async () => {
        const { port, password } = desktop
        await seat.keep(remminaRdp(seat.screen, { port, user: reach.login, password }))
        await shown()
      })
    })
  })

  describe('by keyboard, on the bastion’s own screens', () => {
    /**
     * Types the password into the form, which already has the login, and chooses the only target that
     * matches.
     */
    const throughForm = async (): Promise<void> => {
      const form = await drawn()
      await seat.enter(desktop.password)
      const list = await changedFrom(form)
      await drawn()
      await seat.xdotool('type', '--delay', '30', 'win1')
      await changedFrom(list)
      await seat.xdotool('key', 'Return')
      await shown()
    }

    test('xfreerdp, with the user alone and no password', async () => {
      await seat.view({ user: 'ops1', password: '' })
      await drawn()
      await seat.xdotool('mousemove', '400', '580')
      await throughForm()
    })

    test('a wrong password is asked for again', async () => {
      const before = (await signIns('auth.failure', 0)).length
      await seat.view({ user: reach.login, password: 'wrong' })
      await signIns('auth.failure', before + 1)
      await drawn()
      await seat.xdotool('mousemove', '400', '580')
      await seat.enter('wrong again')
      await signIns('auth.failure', before + 2)
      // The form is the same as before, with the same text.
      await drawn()
      await seat.enter(desktop.password)
      await shown()
    })

    describeWithPeers('Remmina', REMMINA_RDP_PEERS, () => {
      test('goes the same way', async () => {
        const { port } = desktop
        await seat.keep(remminaRdp(seat.screen, { port, user: 'ops1', password: 'wrong' }))
        await drawn()
        await seat.xdotool('mousemove', '400', '500', 'click', '1')
        await throughForm()
      })
    })

    describeWithPeers('rdesktop', [...RDESKTOP_PEERS, ...XRDP_PEERS], () => {
      let targets: XrdpTargets
      beforeAll(async () => {
        targets = await startXrdpTargets(desktop)
      })
      afterAll(async () => {
        await targets.stop()
      })

      test('goes the same way', async () => {
        await targets.add('linux1', 'exec xterm -geometry 130x45+0+0')
        const { port } = desktop
        await seat.keep(rdesktop(seat.screen, { port, user: 'ops1', password: '' }))
        const form = await drawn()
        await seat.xdotool('mousemove', '400', '580')
        await seat.enter(desktop.password)
        const list = await changedFrom(form)
        await drawn()
        await seat.xdotool('type', '--delay', '30', 'linux1')
        await changedFrom(list)
        await seat.xdotool('key', 'Return')
        await shows(
          seat.screen.display,
          ({ width, rgb }) => rgb.readUIntBE((400 * width + 400) * 3, 3) === 0xffffff,
        )
      })
    })
  })

  describe('is refused in words', () => {
    test.each([
      ['a target that is not there', 'ops1+administrator@nowhere'],
      ['somebody unknown', 'nobody+administrator@win1'],
    ])('for %s', async (_, login) => {
      await seat.view(login)
      await drawn()
      const running = await desktop.broker.must<unknown[]>('GET', '/sessions?status=current')
      expect(running).toEqual([])
    })

    test('for a target that is down', async () => {
      const before = (await desktop.closedSessions()).length
      const policy = { security: ['credssp'] }
      const target = { name: 'down', port: await freePort(), account: 'any', password: 'any', policy }
      await seat.view((await desktop.add(target)).login)
      expect((await closed(before)).reason).toMatch(/127\.0\.0\.1.*(refused|cannot|not)/)
      await drawn()
    })

    test('for a stored password that is wrong, which no log has', async () => {
      const before = (await desktop.closedSessions()).length
      const { port, account } = shadow
      const { login } = await desktop.add({ name: 'wrong', port, account, password: 'canary-Pass7' })
      await seat.view(login)
      expect((await closed(before)).result).toBe('failure')
      await drawn()
      expect(desktop.broker.log()).not.toContain('canary-Pass7')
    })

    test('by RDP’s own security, which is none: the client is told to come by TLS', async () => {
      const { port, password } = desktop
      const client = await seat.keep(
        xfreerdp(seat.screen, { port, user: reach.login, password }, ['/sec:rdp']),
      )
      expect(await client.ended).not.toBe(0)
      expect(client.log()).toContain('SSL_REQUIRED_BY_SERVER')
    })
  })
})
