/** One-time tickets for RDP with a real client: by a ticket's file, by NLA, and inside TLS. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { RDP_TICKET_TOKEN } from '../../src/model/rdp-ticket.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { SHADOW_PEERS } from '../peers/rdp/shadow.ts'
import { RDP_VIEWER_PEERS, xfreerdp } from '../peers/rdp/viewers.ts'
import { type Screen, startScreen } from '../peers/screen.ts'
import { startViewer, type Viewer } from '../peers/viewer.ts'
import { until } from '../until.ts'
import type { ReachableDesktop } from './desktop-targets.ts'
import { type RdpDesktop, type ShadowTarget, startRdpDesktop, startShadowTarget } from './rdp-desktops.ts'
import { type Ticket, ticketFor } from './tickets.ts'

const SIZE = { width: 640, height: 480 }
const NLA = ['/sec:nla', `/load-balance-info:${RDP_TICKET_TOKEN}`]

describeWithPeers('a ticket for RDP', [...RDP_VIEWER_PEERS, ...SHADOW_PEERS], () => {
  let desktop: RdpDesktop
  let target: ShadowTarget
  let reachable: ReachableDesktop
  let screen: Screen
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-tickets-'))
  const viewers: Viewer[] = []

  beforeAll(async () => {
    // the file names the bastion by its hostname
    desktop = await startRdpDesktop({ config: { hostname: '127.0.0.1' } })
    screen = await startScreen(SIZE.width, SIZE.height)
    target = await startShadowTarget('nla', SIZE)
    reachable = await desktop.add({ name: 'win1', ...target })
  })
  afterEach(async () => {
    for (const viewer of viewers.splice(0)) await viewer.stop()
  })
  afterAll(async () => {
    await desktop.stop()
    await target.stop()
    await screen.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const ticket = () => ticketFor(desktop.broker, desktop, reachable.target, 'RDP')

  /** Opens the file and enters the password, as in Windows' client. */
  async function open({ rdp_file: content, password }: Ticket): Promise<Viewer> {
    const file = join(folder, 'ticket.rdp')
    writeFileSync(file, content!)
    const args = [file, `/p:${password}`, '/cert:ignore']
    const viewer = await startViewer(findProgram('xfreerdp'), () => args, screen)
    viewers.push(viewer)
    return viewer
  }

  async function show({ user, password }: Ticket, args: string[]): Promise<Viewer> {
    const viewer = await xfreerdp(screen, { port: desktop.port, user, password }, args, SIZE)
    viewers.push(viewer)
    return viewer
  }

  const signIns = async (event: 'auth.success' | 'auth.failure', count: number) =>
    await until(`${count} events ${event} of RDP`, async () => {
      const found = (await desktop.events(event)).filter(({ protocol }) => protocol === 'RDP')
      return found.length >= count ? found : undefined
    })

  /** Expects the session of a valid ticket. */
  async function opened(viewer: Viewer, count: number): Promise<void> {
    const [...signedIn] = await signIns('auth.success', count)
    expect(signedIn.at(-1)).toMatchObject({ user: 'ops1', method: 'ticket', client_ip: '127.0.0.1' })
    const session = (await desktop.events('session.open', count)).at(-1)
    expect(session).toMatchObject({ user: 'ops1', device: 'win1', service: 'rdp' })
    await desktop.events('channel.open', count)
    await viewer.stop()
  }

  test('opens its target by the file that comes with it, once', async () => {
    const made = await ticket()
    expect(made.rdp_file).toContain(`full address:s:127.0.0.1:${desktop.port}\r\n`)
    await opened(await open(made), 1)
    const again = await open(made)
    expect(await again.ended).not.toBe(0)
    expect(again.log()).toMatch(/LOGON_FAILURE/)
    expect((await signIns('auth.failure', 1)).at(-1)).toMatchObject({
      user: 'ops1',
      method: 'ticket',
      reason: 'wrong_ticket',
    })
  })

  test.each([
    ['by NLA, as the first message asks for', NLA],
    ['inside TLS', ['/sec:tls']],
  ])('is the password %s', async (_, args) => {
    const before = (await desktop.events('session.open')).length
    await opened(await show(await ticket(), args), before + 1)
  })

  test('that was taken back, and a user’s own password, sign in nobody by NLA', async () => {
    const made = await ticket()
    const before = (await signIns('auth.failure', 0)).length
    await reachable.grant(['RDP_DRIVE'])
    await reachable.grant(['RDP'])
    const withdrawn = await open(made)
    expect(await withdrawn.ended).not.toBe(0)
    const own = await show({ user: made.user, password: desktop.password }, NLA)
    expect(await own.ended).not.toBe(0)
    expect(own.log()).toMatch(/LOGON_FAILURE/)
    expect(await signIns('auth.failure', before + 2)).toHaveLength(before + 2)
  })
})
