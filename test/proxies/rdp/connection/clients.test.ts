/** Real RDP clients against the server's end of the connection sequence. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { ERROR_INFO } from '../../../../proxies/rdp/codec/session-pdus.ts'
import { UPDATE } from '../../../../proxies/rdp/codec/updates.ts'
import { NEGOTIATION_FAILURE } from '../../../../proxies/rdp/codec/x224.ts'
import type { FrontDesktop } from '../../../../proxies/rdp/connection/front-desktop.ts'
import { type Daemon, run, startDaemon } from '../../../peers/process.ts'
import { describeWithPeers, findProgram } from '../../../peers/program.ts'
import { SCREEN_PEERS, type Screen, shows, startScreen } from '../../../peers/screen.ts'
import { until } from '../../../until.ts'
import { type Door, openDoor, type Visit } from './door.ts'

const LOGIN = 'alice:root@srv1'
const PASSWORD = 'Front-Pass1 é'
const SIZE = { width: 640, height: 480 }

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

/** The whole desktop in one colour of RGB565. */
function fill(desktop: FrontDesktop, colour: number): void {
  const step = 64
  for (let y = 0; y < SIZE.height; y += step) {
    for (let x = 0; x < SIZE.width; x += step) {
      const [width, height] = [Math.min(step, SIZE.width - x), Math.min(step, SIZE.height - y)]
      const pixels = Buffer.from(new Uint16Array(width * height).fill(colour).buffer)
      const head = [
        UPDATE.bitmap,
        1,
        x,
        y,
        x + width - 1,
        y + height - 1,
        width,
        height,
        16,
        0,
        pixels.length,
      ]
      const data = Buffer.concat([Buffer.from(Uint16Array.from(head).buffer), pixels])
      desktop.draw({ code: UPDATE.bitmap, data })
    }
  }
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
      expect(done.code).not.toBe(0)
      expect(`${done.stdout}${done.stderr}`).toMatch(/server denied the connection|Core\(error\)|refused/i)
    })

    test('shows what is drawn, and sends keys and the pointer', async () => {
      door = await openDoor({ paint: (desktop) => fill(desktop, 0x07e0) })
      const command = [findProgram(program), ...args(...tls)].map((word) => `'${word}'`).join(' ')
      client = await startDaemon(
        '/bin/sh',
        ['-c', `${input ? `echo ${input.trim()} | ` : ''}exec ${command}`],
        () => door.visits.some(({ painted }) => painted > 0),
        { env: environment(), timeout: 20_000 },
      )
      await shows(screen.display, ({ rgb }) => rgb.readUIntBE((240 * 640 + 320) * 3, 3) === 0x00ff00)
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

describeWithPeers('clients without TLS at the front', [...SCREEN_PEERS, 'xfreerdp'], () => {
  beforeAll(async () => {
    screen = await startScreen(SIZE.width, SIZE.height)
    home = mkdtempSync(join(tmpdir(), 'sallyport-rdp-'))
  })
  afterAll(async () => {
    await screen.stop()
    rmSync(home, { recursive: true, force: true })
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
