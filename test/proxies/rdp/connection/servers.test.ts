/** The client's end of the connection sequence, and both ends joined, against a real target. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { UPDATE } from '../../../../proxies/rdp/codec/updates.ts'
import { type Daemon, run, startDaemon } from '../../../peers/process.ts'
import { describeWithPeers, findProgram } from '../../../peers/program.ts'
import { startXrdp, XRDP_PEERS, type Xrdp } from '../../../peers/rdp/xrdp.ts'
import { SCREEN_PEERS, type Screen, shows, startScreen } from '../../../peers/screen.ts'
import { createSystemUser, type SystemUser } from '../../../peers/users.ts'
import { until } from '../../../until.ts'
import { openRelay, type Relay } from './relay.ts'
import { openTarget, type Session } from './target.ts'

describeWithPeers('xrdp as a target', [...XRDP_PEERS, ...SCREEN_PEERS, 'xfreerdp', 'xdotool'], () => {
  let user: SystemUser
  let xrdp: Xrdp
  let screen: Screen
  let session: Session | undefined
  let relay: Relay | undefined
  let client: Daemon | undefined

  beforeAll(async () => {
    screen = await startScreen(800, 600)
    user = await createSystemUser()
    xrdp = await startXrdp('id -un >"$HOME/who"; exec xterm -geometry 80x24+0+0 -e sh')
  })
  afterAll(async () => {
    session?.close()
    await client?.stop()
    await relay?.close()
    await xrdp.stop()
    await user.remove()
    await screen.stop()
  })

  /** What the target's desktop has written into a file of the user's. */
  const written = (name: string) =>
    until(
      () => `${name}; came: ${JSON.stringify(session)} ${JSON.stringify(relay?.errors)} ${xrdp.log()}`,
      () => {
        const path = join(user.home, name)
        return existsSync(path) ? readFileSync(path, 'utf8').trim() || undefined : undefined
      },
    )

  test('signs the injected account in and draws its desktop', async () => {
    session = await openTarget(xrdp.port, { domain: '', login: user.name, password: user.password }, 32)
    const { updates } = session
    await until(
      () => `a bitmap; came: ${JSON.stringify(session)} ${xrdp.log()}`,
      () => updates.includes(UPDATE.bitmap) || undefined,
    )
    expect(await written('who')).toBe(user.name)
    expect(session.desktop).toEqual({ width: 800, height: 600, depth: 32 })
    expect(updates).not.toContain(UPDATE.surfaceCommands)
    expect(session.error).toBeUndefined()
    expect(session.disconnect).toBeUndefined()
  })

  test('is shown to a client that knows nothing of the account, and takes its keys', async () => {
    relay = await openRelay(xrdp.port, { domain: '', login: user.name, password: user.password }, 32)
    const { desktops, updates, input, down, errors, port } = relay
    const args = [`/v:127.0.0.1:${port}`, '/u:alice', '/p:Front-Pass1', '/w:800', '/h:600', '/cert:ignore']
    client = await startDaemon(
      findProgram('xfreerdp'),
      [...args, '/sec:tls', '/rfx', '/gfx', '+clipboard'],
      () => updates.includes(UPDATE.bitmap),
      { env: { PATH: process.env.PATH, HOME: user.home, DISPLAY: screen.display }, timeout: 20_000 },
    )
    // The white of xterm.
    await shows(screen.display, ({ rgb }) => rgb.readUIntBE((300 * 800 + 200) * 3, 3) === 0xffffff)
    const xdotool = (...words: string[]) =>
      run(findProgram('xdotool'), words, { env: { ...process.env, DISPLAY: screen.display } })
    await xdotool('mousemove', '200', '200', 'click', '1')
    await xdotool('type', 'id -un >typed')
    await xdotool('key', 'Return')
    expect(await written('typed')).toBe(user.name)
    expect(desktops).toEqual([{ width: 800, height: 600, depth: 32 }])
    expect(new Set(input)).toEqual(new Set(['pointer', 'key', 'locks']))
    expect(errors).toEqual([])
    const sent = Buffer.concat(down)
    for (const encoding of ['utf8', 'utf16le'] as const)
      expect(sent.includes(Buffer.from(user.password, encoding))).toBe(false)
  })
})
