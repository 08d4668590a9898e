/**
 * The channels beside the desktop of an RDP session: clipboard, files, drives, printers and sound, each with
 * its right.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Daemon, run, startDaemon } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { drivesOf } from '../peers/rdp/sesman.ts'
import { RDESKTOP_PEERS, RDP_VIEWER_PEERS, rdesktop } from '../peers/rdp/viewers.ts'
import { XRDP_PEERS } from '../peers/rdp/xrdp.ts'
import { type Picture, SCREEN_PEERS, shows } from '../peers/screen.ts'
import type { SystemUser } from '../peers/users.ts'
import { until } from '../until.ts'
import { type RdpDesktop, startRdpDesktop, startXrdpTargets, type XrdpTargets } from './rdp-desktops.ts'
import { type Seat, startSeat } from './rdp-seat.ts'
import { fieldsOf, framesOf } from './recorded.ts'

const [WIDTH, HEIGHT] = [800, 600]
const PASTE_MS = 3_000
const UP = 'from the client: größer'
const DOWN = 'from the target: grün'

const PEERS = [...RDP_VIEWER_PEERS, ...RDESKTOP_PEERS, ...SCREEN_PEERS, ...XRDP_PEERS, 'xclip'] as const

describeWithPeers('beside the desktop', PEERS, () => {
  let desktop: RdpDesktop
  let targets: XrdpTargets
  let seat: Seat
  let folder: string
  const programs: Daemon[] = []

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sallyport-channels-'))
    desktop = await startRdpDesktop()
    targets = await startXrdpTargets(desktop)
    seat = await startSeat(desktop, { width: WIDTH, height: HEIGHT })
  })
  afterEach(async () => {
    for (const program of programs.splice(0)) await program.stop()
    await seat.clear()
  })
  afterAll(async () => {
    await targets.stop()
    await desktop.stop()
    await seat.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  type Display = NodeJS.ProcessEnv
  const here = (): Display => ({ ...process.env, DISPLAY: seat.screen.display })

  /**
   * Opens a session on its own desktop, and waits for its display; with devices by rdesktop, whose devices
   * xrdp accepts.
   */
  async function session(name: string, subprotocols: string[], devices: string[] = []) {
    const program = 'echo $DISPLAY >"$HOME/display"; exec xterm -geometry 130x45+0+0'
    const { login, user } = await targets.add(name, program, { subprotocols: ['RDP', ...subprotocols] })
    const { port, password } = desktop
    const viewer = await (devices.length === 0
      ? seat.view(login, ['/bpp:32'])
      : seat.keep(rdesktop(seat.screen, { port, user: login, password }, devices)))
    await shows(
      seat.screen.display,
      ({ width, rgb }: Picture) => rgb.readUIntBE((400 * width + 400) * 3, 3) === 0xffffff,
    )
    const there = {
      ...process.env,
      DISPLAY: readFileSync(join(user.home, 'display'), 'utf8').trim(),
      XAUTHORITY: join(user.home, '.Xauthority'),
    }
    return { viewer, user, there }
  }

  /**
   * Returns the clipboard; empty also if the selection's owner does not answer: xrdp sometimes does not while
   * it gets a new list.
   */
  const pasted = async (env: Display, type = 'UTF8_STRING'): Promise<string> => {
    const args = ['-selection', 'clipboard', '-out', '-target', type]
    try {
      return (await run(findProgram('xclip'), args, { env, timeout: PASTE_MS })).stdout
    } catch {
      return ''
    }
  }

  /** Copies the text, and stays the selection's owner. */
  async function copy(env: Display, text: string, type = 'UTF8_STRING'): Promise<void> {
    const line = 'printf %s "$0" | exec xclip -quiet -selection clipboard -in -target "$1"'
    programs.push(await startDaemon('sh', ['-c', line, text, type], () => true, { env }))
    await until(`${text} on its own display`, async () => (await pasted(env, type)) === text || undefined)
  }
  const arrives = (env: Display, text: string) =>
    until(`${text} on ${env['DISPLAY']}`, async () => (await pasted(env)) === text || undefined)

  const refusals = async (id: string) =>
    (await desktop.events('channel.denied')).filter(({ session }) => session === id)
  const running = async () =>
    (await desktop.broker.must<{ id: string }[]>('GET', '/sessions?status=current'))[0]!.id
  const refused = async (right: string) => {
    const id = await running()
    return await until(`a refusal for want of ${right}`, async () =>
      (await refusals(id)).find(({ subprotocol }) => subprotocol === right),
    )
  }
  const as = (user: SystemUser, command: string) =>
    run('runuser', ['-u', user.name, '--', 'sh', '-c', command])

  test('texts go both ways, as events with sizes and into the recording', async () => {
    const { viewer, there } = await session('texts', ['RDP_CLIPBOARD_UP', 'RDP_CLIPBOARD_DOWN'])
    await copy(here(), UP)
    await arrives(there, UP)
    await copy(there, DOWN)
    await arrives(here(), DOWN)
    const id = await seat.ended(viewer)
    const events = (await desktop.events('clipboard', 2)).filter(({ session }) => session === id)
    for (const direction of ['up', 'down']) {
      const subprotocol = `RDP_CLIPBOARD_${direction.toUpperCase()}`
      expect(events).toContainEqual(expect.objectContaining({ direction, subprotocol }))
    }
    const texts = fieldsOf(await framesOf(desktop.broker, id), 'clipboard').map(({ text }) => text)
    expect(texts).toEqual(expect.arrayContaining([UP, DOWN]))
    expect(desktop.broker.log()).not.toContain('grün')
  })

  test.each([
    ['up', UP, DOWN],
    ['down', DOWN, UP],
  ])('texts go %s alone with that right alone', async (direction, allowed, forbidden) => {
    const right = `RDP_CLIPBOARD_${direction.toUpperCase()}`
    const { there } = await session(`only-${direction}`, [right])
    const [from, to] = direction === 'up' ? [here(), there] : [there, here()]
    await copy(to, forbidden)
    await refused(direction === 'up' ? 'RDP_CLIPBOARD_DOWN' : 'RDP_CLIPBOARD_UP')
    expect(await pasted(from)).not.toBe(forbidden)
    await copy(from, allowed)
    await arrives(to, allowed)
    expect(await pasted(from)).toBe(allowed)
  })

  test('files are pasted with their right, and are told of by name and size', async () => {
    const rights = ['RDP_CLIPBOARD_UP', 'RDP_CLIPBOARD_DOWN', 'RDP_CLIPBOARD_FILE']
    const { user, there } = await session('files', rights)
    const content = 'content of the file '.repeat(500)
    const path = join(folder, 'pasted.txt')
    writeFileSync(path, content)
    await copy(here(), pathToFileURL(path).href, 'text/uri-list')
    const list = await until('a list of files', async () => {
      const got = await pasted(there, 'text/uri-list')
      return got.includes('pasted.txt') ? got : undefined
    })
    expect(list).toContain(user.home)
    const read = await as(user, `cat "${drivesOf(user)}/.clipboard/pasted.txt"`)
    expect(read.stdout).toBe(content)
    const [event] = await desktop.events('file.transfer', 1)
    expect(event).toMatchObject({
      subprotocol: 'RDP_CLIPBOARD_FILE',
      direction: 'up',
      path: 'pasted.txt',
      size: content.length,
    })
    expect(desktop.broker.log()).not.toContain('content of the file')
  })

  test('files are not pasted without it, and the person reads why', async () => {
    const { there } = await session('no-files', ['RDP_CLIPBOARD_UP', 'RDP_CLIPBOARD_DOWN'])
    const path = join(folder, 'kept.txt')
    writeFileSync(path, 'kept')
    await copy(here(), pathToFileURL(path).href, 'text/uri-list')
    await refused('RDP_CLIPBOARD_FILE')
    expect(await pasted(there, 'text/uri-list')).not.toContain('kept.txt')
    for (const program of programs.splice(0)) await program.stop()
    await copy(here(), UP)
    await arrives(there, UP)
  })

  test('drives, printers and sound pass with their rights', async () => {
    writeFileSync(join(folder, 'from-client'), 'of the client')
    const { viewer, user } = await session(
      'devices',
      ['RDP_DRIVE', 'RDP_PRINTER', 'RDP_AUDIO_OUTPUT'],
      ['-r', `disk:share=${folder}`, '-r', 'printer:laser', '-r', 'sound:local'],
    )
    const share = `${drivesOf(user)}/share`
    const content = await until('the drive', async () => {
      const read = await as(user, `cat ${share}/from-client`)
      return read.code === 0 ? read.stdout : undefined
    })
    expect(content).toBe('of the client')
    expect((await as(user, `printf 'of the target' >${share}/from-target`)).stderr).toBe('')
    await until(
      'the file',
      () => readFileSync(join(folder, 'from-target'), 'utf8') === 'of the target' || undefined,
    )
    const id = await seat.ended(viewer)
    const transfers = (await desktop.events('file.transfer')).filter(({ session }) => session === id)
    expect(transfers).toContainEqual(
      expect.objectContaining({ subprotocol: 'RDP_DRIVE', direction: 'up', size: 13 }),
    )
    expect(transfers).toContainEqual(
      expect.objectContaining({ subprotocol: 'RDP_DRIVE', direction: 'down', size: 13 }),
    )
    const opened = (await desktop.events('channel.open')).filter(({ session }) => session === id)
    expect(opened.map(({ subprotocol }) => subprotocol)).toEqual(
      expect.arrayContaining(['RDP_DRIVE', 'RDP_PRINTER', 'RDP_AUDIO_OUTPUT']),
    )
    expect((await refusals(id)).map(({ subprotocol }) => subprotocol)).not.toContain('RDP_DRIVE')
  })

  test('one of them alone lets no other one pass', async () => {
    const { viewer, user } = await session(
      'printer',
      ['RDP_PRINTER'],
      [`disk:share=${folder}`, 'printer:laser', 'sound:local', 'comport:COM1=/dev/null'].flatMap((one) => [
        '-r',
        one,
      ]),
    )
    for (const right of ['RDP_DRIVE', 'RDP_AUDIO_OUTPUT', 'RDP_CLIPBOARD_UP', 'RDP_COM_PORT'])
      await refused(right)
    const id = await seat.ended(viewer)
    const opened = (await desktop.events('channel.open')).filter(({ session }) => session === id)
    expect(opened.map(({ subprotocol }) => subprotocol)).toEqual(['RDP', 'RDP_PRINTER'])
    expect((await as(user, `ls ${drivesOf(user)}`)).stdout).not.toContain('share')
  })

  test('without a right for any device each that is shared is told of by its name', async () => {
    const devices = [`disk:share=${folder}`, 'printer:laser'].flatMap((one) => ['-r', one])
    const { viewer } = await session('unshared', [], devices)
    const id = await running()
    for (const [subprotocol, destination] of [
      ['RDP_DRIVE', 'share'],
      ['RDP_PRINTER', 'PRN1'],
    ]) {
      await until(`a refusal of ${destination}`, async () =>
        (await refusals(id)).find(
          (one) => one.subprotocol === subprotocol && one.destination === destination,
        ),
      )
    }
    await seat.ended(viewer)
  })
})
