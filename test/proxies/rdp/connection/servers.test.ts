/** The client's end of the connection sequence, and both ends joined, against a real target. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { ClipboardFilter } from '../../../../proxies/rdp/channels/clipboard-filter.ts'
import { DeviceFilter } from '../../../../proxies/rdp/channels/device-filter.ts'
import { DynamicFilter } from '../../../../proxies/rdp/channels/dynamic-filter.ts'
import { CLIPRDR } from '../../../../proxies/rdp/codec/cliprdr.ts'
import { DISPLAY_CONTROL } from '../../../../proxies/rdp/codec/display-control.ts'
import { DRDYNVC } from '../../../../proxies/rdp/codec/drdynvc.ts'
import { DEVICE_TYPE, RDPDR } from '../../../../proxies/rdp/codec/rdpdr.ts'
import { UPDATE } from '../../../../proxies/rdp/codec/updates.ts'
import { SECURITY_PROTOCOL } from '../../../../proxies/rdp/codec/x224.ts'
import { type Daemon, run, startDaemon } from '../../../peers/process.ts'
import { describeWithPeers, findProgram } from '../../../peers/program.ts'
import { setDesktop } from '../../../peers/rdp/sesman.ts'
import { SHADOW_PEERS, type Shadow, startShadow } from '../../../peers/rdp/shadow.ts'
import { startXrdp, XRDP_PEERS, type Xrdp } from '../../../peers/rdp/xrdp.ts'
import {
  differingPixels,
  type Picture,
  paint,
  pictureOf,
  SCREEN_PEERS,
  type Screen,
  shows,
  startScreen,
} from '../../../peers/screen.ts'
import { createSystemUser, type SystemUser } from '../../../peers/users.ts'
import { until } from '../../../until.ts'
import { type Event, keep } from '../../stream-events.ts'
import { signIn } from '../credssp/connections.ts'
import { pictureFrom } from './picture.ts'
import { openRelay, type Relay } from './relay.ts'
import { dial } from './target.ts'

const DESKTOP_PEERS = [...XRDP_PEERS, ...SCREEN_PEERS, 'xfreerdp', 'xdotool', 'xclip'] as const

describeWithPeers('xrdp as a target', DESKTOP_PEERS, () => {
  let user: SystemUser
  let xrdp: Xrdp
  let screen: Screen
  let relay: Relay | undefined
  let client: Daemon | undefined

  beforeAll(async () => {
    screen = await startScreen(800, 600)
    user = await createSystemUser()
    setDesktop(
      user,
      'id -un >"$HOME/who"; while sleep 1; do echo from the target | xclip -selection clipboard; done & exec xterm -geometry 80x24+0+0 -e sh',
    )
    xrdp = await startXrdp()
  })
  afterEach(async () => {
    await client?.stop()
    await relay?.close()
    client = relay = undefined
  })
  afterAll(async () => {
    await xrdp.stop()
    await user.remove()
    await screen.stop()
  })

  /** Contents of a file that the target's desktop has written to the user's folder. */
  const written = (name: string) =>
    until(
      () => `${name}; came: ${JSON.stringify(relay?.errors)} ${xrdp.log()}`,
      () => {
        const path = join(user.home, name)
        return existsSync(path) ? readFileSync(path, 'utf8').trim() || undefined : undefined
      },
    )

  test('is shown to a client that knows nothing of the account, and takes its keys', async () => {
    const logon = { domain: '', login: user.name, password: user.password }
    const dialled = () => dial(xrdp.port, user.name)
    relay = await openRelay({ dial: dialled, selectedProtocol: SECURITY_PROTOCOL.tls, logon, depth: 32 })
    const { desktops, updates, input, down, errors, port } = relay
    const args = [`/v:127.0.0.1:${port}`, '/u:alice', '/p:Front-Pass1', '/w:800', '/h:600', '/cert:ignore']
    client = await startDaemon(
      findProgram('xfreerdp'),
      [...args, '/sec:tls', '/rfx', '/gfx', '+clipboard'],
      () => updates.includes(UPDATE.bitmap),
      { env: { PATH: process.env.PATH, HOME: user.home, DISPLAY: screen.display } },
    )
    // xterm's white background.
    await shows(screen.display, ({ rgb }) => rgb.readUIntBE((300 * 800 + 200) * 3, 3) === 0xffffff)
    const xdotool = (...words: string[]) =>
      run(findProgram('xdotool'), words, { env: { ...process.env, DISPLAY: screen.display } })
    await xdotool('mousemove', '200', '200', 'click', '1')
    await xdotool('type', 'id -un >typed')
    await xdotool('key', 'Return')
    expect(await written('typed')).toBe(user.name)
    const { drawn } = relay
    await shows(screen.display, (picture) => differingPixels(picture, drawnBy({ drawn })) === 0)
    expect(desktops).toEqual([{ width: 800, height: 600, depth: 32 }])
    expect(new Set(input)).toEqual(new Set(['pointer', 'key', 'locks']))
    expect(errors).toEqual([])
    const sent = Buffer.concat(down)
    for (const encoding of ['utf8', 'utf16le'] as const)
      expect(sent.includes(Buffer.from(user.password, encoding))).toBe(false)
  })

  test('gives the client what rights allow of its channels, and not more', async () => {
    const heard: Event[] = []
    const note =
      (kind: string) =>
      (...values: unknown[]): void =>
        keep(heard, kind, ...values)
    const clipboard = {
      denied: note('clipboard denied'),
      text: note('text'),
      data: note('data'),
      files: note('files'),
      transferred: note('file transferred'),
    }
    const devices = {
      denied: note('device denied'),
      announced: note('announced'),
      opened: note('opened'),
      renamed: note('renamed'),
      transferred: note('transferred'),
      deleted: note('deleted'),
    }
    const dynamic = { denied: note('channel denied'), opened: note('channel opened'), data: () => true }
    relay = await openRelay({
      dial: () => dial(xrdp.port, user.name),
      selectedProtocol: SECURITY_PROTOCOL.tls,
      logon: { domain: '', login: user.name, password: user.password },
      depth: 16,
      filters: {
        [CLIPRDR]: (send) =>
          new ClipboardFilter({
            rights: { up: false, down: true, files: false },
            visitor: clipboard,
            send,
          }),
        [RDPDR]: (send) =>
          new DeviceFilter({
            rights: { drives: false, printers: true, ports: false, smartCards: false },
            visitor: devices,
            send,
          }),
        [DRDYNVC]: (send) =>
          new DynamicFilter({ isAllowed: (name) => name === DISPLAY_CONTROL, visitor: dynamic, send }),
      },
    })
    const { updates, errors, port } = relay
    const env = { PATH: process.env.PATH, HOME: user.home, DISPLAY: screen.display }
    const args = [`/v:127.0.0.1:${port}`, '/u:alice', '/p:Front-Pass1', '/w:800', '/h:600', '/cert:ignore']
    client = await startDaemon(
      findProgram('xfreerdp'),
      [...args, '/sec:tls', '+clipboard', '/smartcard', '/dynamic-resolution'],
      () => updates.includes(UPDATE.bitmap),
      { env },
    )
    const soFar = () => `${JSON.stringify(heard)} ${String(errors)} ${client?.log()}`
    const happens = (...event: unknown[]) =>
      until(
        () => `${JSON.stringify(event)}; came: ${soFar()}`,
        () => heard.find((one) => JSON.stringify(one) === JSON.stringify(event)),
      )
    await happens('device denied', { type: DEVICE_TYPE.smartCard, name: 'SCARD' })
    await happens('channel opened', DISPLAY_CONTROL)
    const pasted = () => run(findProgram('xclip'), ['-o', '-selection', 'clipboard'], { env })
    await until(
      () => `the target's text; came: ${soFar()}`,
      async () => (await pasted()).stdout.startsWith('from the target') || undefined,
    )
    await happens('text', 'down', 'from the target\n', 16)
    const copied = await startDaemon(
      '/bin/sh',
      ['-c', `echo of the client | exec ${findProgram('xclip')} -quiet -selection clipboard`],
      () => heard.some(([kind]) => kind === 'clipboard denied'),
      { env },
    )
    await copied.stop()
    expect(heard).toContainEqual(['clipboard denied', 'up', 'clipboard'])
    expect(heard.filter(([kind, direction]) => kind === 'text' && direction === 'up')).toEqual([])
    expect(errors).toEqual([])
  })
})

describeWithPeers('FreeRDP’s shadow as a target', [...SHADOW_PEERS, ...SCREEN_PEERS, 'xfreerdp'], () => {
  let shared: Screen
  let screen: Screen
  let shadow: Shadow
  let relay: Relay | undefined
  let client: Daemon | undefined
  const logon = { domain: '', login: 'administrator', password: 'Target-Pass1' }

  beforeAll(async () => {
    ;[shared, screen] = await Promise.all([startScreen(800, 600), startScreen(800, 600)])
    shadow = await startShadow({
      screen: shared,
      security: 'nla',
      users: [{ name: logon.login, password: logon.password }],
    })
  })
  afterEach(async () => {
    await client?.stop()
    await relay?.close()
  })
  afterAll(async () => {
    await shadow.stop()
    await screen.stop()
    await shared.stop()
  })

  test.each([32, 16] as const)(
    'is shown to the pixel through NLA, in fragments, at %i bits',
    async (depth) => {
      relay = await openRelay({
        dial: () => signIn({ port: shadow.port, user: logon.login, password: logon.password }),
        selectedProtocol: SECURITY_PROTOCOL.credssp,
        logon,
        depth,
      })
      const { updates, down, errors, port } = relay
      const args = [`/v:127.0.0.1:${port}`, '/u:alice', '/p:Front-Pass1', '/w:800', '/h:600', '/cert:ignore']
      client = await startDaemon(
        findProgram('xfreerdp'),
        [...args, '/sec:tls', '/rfx', '/gfx', `/bpp:${depth}`],
        () => updates.includes(UPDATE.bitmap),
        {
          env: { PATH: process.env.PATH, HOME: '/nonexistent', DISPLAY: screen.display },
        },
      )
      await paint(shared.display, colours(depth))
      const wanted = await pictureOf(shared.display)
      await shows(screen.display, (picture) => differingPixels(picture, wanted) === 0)
      expect(differingPixels(drawnBy(relay), wanted)).toBe(0)
      expect(relay.drawn.map(({ flaws, stopped }) => ({ flaws, stopped }))).toEqual([
        { flaws: 0, stopped: undefined },
      ])
      expect(errors).toEqual([])
      // Checks for FIRST in an update's header, set for bitmaps longer than one fragment.
      expect(down.some((pdu) => pdu[0] === 0 && ((pdu[3]! >> 4) & 3) === 2)).toBe(true)
    },
  )
})

/** The last desktop, as in a replay. */
const drawnBy = ({ drawn }: Pick<Relay, 'drawn'>): Picture => pictureFrom(drawn.at(-1)!)

/** Different pixels, in colours that 16 bits can hold. */
function colours(depth: 16 | 32): Picture {
  const rgb = Buffer.alloc(800 * 600 * 3)
  for (let at = 0; at < rgb.length; at++) rgb[at] = (at * 7 + (at >> 8) * 13) & 0xff
  if (depth === 16) for (let at = 0; at < rgb.length; at++) rgb[at] = rgb[at]! & 0x80 ? 0xff : 0
  return { width: 800, height: 600, rgb }
}
