/** Real RDP clients against the server's end of the connection sequence. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { COLOUR } from '../../../../proxies/desktop/screens/palette.ts'
import { ERROR_INFO } from '../../../../proxies/rdp/codec/session-pdus.ts'
import { NEGOTIATION_FAILURE } from '../../../../proxies/rdp/codec/x224.ts'
import { encodeCanvas } from '../../../../proxies/rdp/local/bitmaps.ts'
import { RdpDesktop } from '../../../../recordings/decode/graphics/rdp/desktop.ts'
import { Canvas } from '../../../../src/drawing/canvas.ts'
import { type Daemon, run, startDaemon } from '../../../peers/process.ts'
import { describeWithPeers, findProgram } from '../../../peers/program.ts'
import { type Picture, SCREEN_PEERS, type Screen, shows, startScreen } from '../../../peers/screen.ts'
import { until } from '../../../until.ts'
import { type Door, openDoor, type Visit } from './listener.ts'
import { pictureFrom } from './picture.ts'

const LOGIN = 'alice:root@srv1'
const PASSWORD = 'Front-Pass1 é'
const SIZE = { width: 636, height: 477 }

let screen: Screen
let home: string
let door: Door
let client: Daemon | undefined
const environment = () => ({ PATH: process.env.PATH, HOME: home, DISPLAY: screen.display, LANG: 'C.UTF-8' })

const freerdp = (...more: string[]) => [
  `/v:127.0.0.1:${door.port}`,
  `/u:${LOGIN}`,
  `/p:${PASSWORD}`,
  `/w:${SIZE.width}`,
  `/h:${SIZE.height}`,
  '/cert:ignore',
  '-wallpaper',
  ...more,
]
const rdesktop = (...more: string[]) => [
  ...['-u', LOGIN, '-p', PASSWORD, '-g', `${SIZE.width}x${SIZE.height}`, '-a', '16', ...more],
  `127.0.0.1:${door.port}`,
]

/** A screen with text on it, whose size is a multiple of nothing. */
function drawScreen(): Canvas {
  const canvas = new Canvas(SIZE.width, SIZE.height)
  canvas.fill(0, 0, SIZE.width, SIZE.height, COLOUR.backdrop)
  canvas.fill(37, 41, 555, 397, COLOUR.panel)
  for (let at = 0; at < 300; at++) {
    canvas.glyph(50 + 9 * (at % 57), 60 + 20 * Math.floor(at / 57), 0x21 + (at % 90), COLOUR.text)
  }
  canvas.scaledGlyph(100, 250, 0x40, COLOUR.failure, 9)
  return canvas
}
const SCREEN = encodeCanvas(0, 0, drawScreen(), 16)

/** The same screen, drawn by the decoder of recordings. */
function drawn(): Picture {
  const desktop = new RdpDesktop(SIZE)
  for (const { code, data } of SCREEN) for (const _pause of desktop.update(code, data));
  return pictureFrom(desktop)
}

/** FreeRDP 2 extends six bits to eight by `(green << 2) + (green >> 3)`, up to four more than others. */
function isNearly(one: Picture, other: Picture): boolean {
  return (
    one.rgb.length === other.rgb.length && one.rgb.every((part, at) => Math.abs(part - other.rgb[at]!) <= 4)
  )
}

beforeEach(() => {
  client = undefined
})
afterEach(async () => {
  await client?.stop()
  await door.close()
})

const soFar = () => JSON.stringify(door.visits, undefined, 1)
const visited = (what: string, is: (visit: Visit) => boolean) =>
  until(
    () => `${what}; came: ${soFar()}`,
    () => door.visits.find(is),
  )

const CLIENTS = [
  { program: 'xfreerdp', args: freerdp, tls: ['/sec:tls'], input: '' },
  { program: 'rdesktop', args: rdesktop, tls: [], input: 'yes\n' },
] as const

for (const { program, args, tls, input } of CLIENTS) {
  describeWithPeers(`${program} at the front`, [...SCREEN_PEERS, program, 'xdotool'], () => {
    beforeAll(async () => {
      screen = await startScreen(SIZE.width, SIZE.height)
      home = mkdtempSync(join(tmpdir(), 'sallyport-rdp-'))
    })
    afterAll(async () => {
      await screen.stop()
      rmSync(home, { recursive: true, force: true })
    })

    test('tells login and password, and is refused politely', async () => {
      door = await openDoor({ refusal: ERROR_INFO.serverDenied })
      const done = await run(findProgram(program), args(...tls), { env: environment(), input })
      const [visit] = door.visits
      expect(visit?.error).toBeUndefined()
      expect(visit?.info).toMatchObject({ login: LOGIN, password: PASSWORD, domain: '' })
      expect(visit?.core).toMatchObject({ ...SIZE, keyboardLayout: 0x409, selectedProtocol: 1 })
      expect(visit?.channels?.map(({ name }) => name)).toEqual(expect.arrayContaining(['cliprdr', 'rdpdr']))
      expect(visit?.painted).toBe(1)
      // Both programs exit with the reason sent to them as their exit code.
      expect(done.code).toBe(ERROR_INFO.serverDenied)
    })

    test('shows what is drawn, and sends keys and the pointer', async () => {
      door = await openDoor({
        paint: (desktop) => {
          for (const update of SCREEN) desktop.draw(update)
        },
      })
      const command = [findProgram(program), ...args(...tls)].map((word) => `'${word}'`).join(' ')
      client = await startDaemon(
        '/bin/sh',
        ['-c', `${input ? `echo ${input.trim()} | ` : ''}exec ${command}`],
        () => door.visits.some(({ painted }) => painted > 0),
        { env: environment() },
      )
      const wanted = drawn()
      await shows(screen.display, (picture) => isNearly(picture, wanted))
      const xdotool = (...words: string[]) =>
        run(findProgram('xdotool'), words, { env: { ...process.env, DISPLAY: screen.display } })
      await xdotool('mousemove', '320', '240', 'click', '1')
      await xdotool('key', 'a')
      const visit = await visited('the key', ({ input }) => input.some(({ kind }) => kind === 'key'))
      await visited('its release', (one) =>
        one.input.some((event) => event.kind === 'key' && event.code === 0x1e && !event.isDown),
      )
      expect(visit.input).toContainEqual({ kind: 'key', code: 0x1e, extended: 0, isDown: true })
      expect(visit.input).toContainEqual({ kind: 'pointer', flags: 0x9000, x: 320, y: 240 })
      expect(visit.error).toBeUndefined()
    })
  })
}

describeWithPeers('what is agreed at the front', [...SCREEN_PEERS, 'xfreerdp'], () => {
  beforeAll(async () => {
    screen = await startScreen(SIZE.width, SIZE.height)
    home = mkdtempSync(join(tmpdir(), 'sallyport-rdp-'))
  })
  afterAll(async () => {
    await screen.stop()
    rmSync(home, { recursive: true, force: true })
  })

  test('by NLA a client comes as far as the desktop', async () => {
    door = await openDoor({ users: { [LOGIN]: PASSWORD }, refusal: ERROR_INFO.serverDenied })
    const done = await run(findProgram('xfreerdp'), freerdp('/sec:nla'), { env: environment() })
    const [visit] = door.visits
    expect(visit?.outcome).toMatchObject({ credentials: { user: LOGIN } })
    expect(visit?.core).toMatchObject({ ...SIZE, selectedProtocol: 2 })
    expect(visit?.painted).toBe(1)
    expect(visit?.error).toBeUndefined()
    expect(done.code).toBe(ERROR_INFO.serverDenied)
  })

  test('a client without NLA is refused where it is required, with the code that says so', async () => {
    door = await openDoor({ users: {} })
    const done = await run(findProgram('xfreerdp'), freerdp('/sec:tls'), { env: environment() })
    expect(`${done.stdout}${done.stderr}`).toContain('HYBRID_REQUIRED_BY_SERVER')
    expect(door.visits[0]?.negotiated).toMatchObject({ failure: NEGOTIATION_FAILURE.credsspRequired })
  })

  test("RDP's own security is refused with the code that says so", async () => {
    door = await openDoor()
    const done = await run(findProgram('xfreerdp'), freerdp('/sec:rdp'), { env: environment() })
    expect(done.code).not.toBe(0)
    expect(`${done.stdout}${done.stderr}`).toContain('SSL_REQUIRED_BY_SERVER')
    expect(door.visits[0]?.negotiated).toMatchObject({
      result: 'refused',
      failure: NEGOTIATION_FAILURE.tlsRequired,
    })
    expect(door.visits[0]?.info).toBeUndefined()
  })
})
