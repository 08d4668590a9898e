/**
 * An authorized user acts over RDP so that the recording does not show it: before the first picture, on an
 * empty desktop, with a target that was ordered not to draw, without accepting its pictures, and at the very
 * end.
 */
import { Buffer } from 'node:buffer'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { RdpTarget } from '../../proxies/rdp/back/target.ts'
import { parseClientData } from '../../proxies/rdp/codec/client-data.ts'
import { BLOCK } from '../../proxies/rdp/codec/data-blocks.ts'
import { buildFastPathInput, type InputEvent } from '../../proxies/rdp/codec/input.ts'
import {
  buildShareData,
  CONTROL_PDU,
  DATA_PDU,
  parseShare,
  parseShareData,
} from '../../proxies/rdp/codec/share.ts'
import { UPDATE, type Update } from '../../proxies/rdp/codec/updates.ts'
import type { FrontDesktop } from '../../proxies/rdp/connection/front-desktop.ts'
import type { ReachableDesktop } from '../e2e/desktop-targets.ts'
import { type RdpDesktop, startRdpDesktop } from '../e2e/rdp-desktops.ts'
import { sallyport } from '../e2e/recorded.ts'
import { readPng } from '../peers/live-desktop.ts'
import { type Door, openDoor } from '../proxies/rdp/connection/listener.ts'
import { clientCore } from '../proxies/rdp/connection/target.ts'
import { openTarget, takeDesktop } from '../proxies/rdp/sessions.ts'
import { until } from '../until.ts'

const SIZE = { width: 800, height: 600 }
/** The share of FrontDesktop, which is the target here. */
const SHARE = 0x000103ea
const words = (...numbers: number[]) => Buffer.from(Uint16Array.from(numbers).buffer)
/** Fills the desktop with one colour, by runs. */
const WHOLE: Update = {
  code: UPDATE.bitmap,
  data: Buffer.concat([
    words(1, 1, 0, 0, SIZE.width - 1, SIZE.height - 1, SIZE.width, SIZE.height, 16, 0x401, 5 * 8),
    Buffer.concat(Array.from({ length: 8 }, () => Buffer.from('f3ffff1234', 'hex'))),
  ]),
}
const MARKS = 400
/** Draws eight white pixels in a place that is used only here. */
const mark = (place: number): Update => ({
  code: UPDATE.bitmap,
  data: Buffer.concat([
    words(1, 1, 8 * place, MARKS, 8 * place + 7, MARKS, 8, 1, 16, 0, 16),
    Buffer.alloc(16, 0xff),
  ]),
})
/** An update that takes some time to send. */
const NOISE: Update = {
  code: UPDATE.bitmap,
  data: Buffer.concat([words(1, 1, 0, 0, 199, 149, 200, 150, 16, 0, 60_000), Buffer.alloc(60_000, 'noise')]),
}

/** Waiting bytes at which a target skips pictures that are out of date before they could be sent. */
const SKIPPED = 1024 * 1024

let desktop: RdpDesktop
let target: Door
let reach: ReachableDesktop
/** Serves a client that has the target's desktop: handles input, and can write to it. */
let begin: (front: FrontDesktop, tls: TLSSocket) => void
let act: (front: FrontDesktop, events: readonly InputEvent[], tls: TLSSocket) => void
let hear: (data: Uint8Array) => void
const clients: RdpTarget[] = []

beforeAll(async () => {
  desktop = await startRdpDesktop()
  target = await openDoor({
    paint: (front, _size, tls) => begin(front, tls),
    input: (front, events, tls) => act(front, events, tls),
    io: (data) => hear(data),
  })
  const policy = { security: ['tls'], logon_wait: 0 }
  reach = await desktop.add({ name: 'false', port: target.port, account: 'any', password: 'any', policy })
})
beforeEach(() => {
  begin = (front) => front.draw(WHOLE)
  act = () => undefined
  hear = () => undefined
})
afterEach(async () => {
  for (const { stream } of clients.splice(0)) stream.destroy()
  await until('the end of all sessions', async () => {
    const rows = await desktop.broker.must<unknown[]>('GET', '/sessions?status=current')
    return rows.length === 0 || undefined
  })
})
afterAll(async () => {
  await desktop?.stop()
  await target?.close()
})

/** Connects as a client that sends login and password inside TLS. */
async function view(size = SIZE): Promise<{ client: RdpTarget; seen: ReturnType<typeof takeDesktop> }> {
  const { port, password } = desktop
  const rdp = { security: ['tls'], logonWait: 0 } as const
  const core = clientCore(size.width, size.height)
  const client = await openTarget(
    { port, login: reach.login, password, rdp: { ...rdp } },
    { client: parseClientData([{ type: BLOCK.clientCore, body: core }]) },
  )
  clients.push(client)
  return { client, seen: takeDesktop(client) }
}
const press = ({ connection }: RdpTarget, code: number) =>
  connection.sendFastPath(buildFastPathInput([{ kind: 'key', code, extended: 0, isDown: true }]))
const visit = () => target.visits.at(-1)!
const keys = () => visit().input.flatMap((event) => (event.kind === 'key' ? [event.code] : []))

const running = async () =>
  (await desktop.broker.must<{ id: string }[]>('GET', '/sessions?status=current'))[0]!.id

/** Returns the places of the marks at the end of the session's recording, once that is closed. */
async function recordedMarks(id: string): Promise<number[]> {
  await until('the end of the session', async () =>
    (await desktop.closedSessions()).find((row) => row.id === id),
  )
  const done = await sallyport(desktop.broker, ['recordings', 'export', id, '--format', 'png'])
  const { width, rgb } = readPng(done.bytes)
  const isWhite = (place: number) => rgb.readUIntBE(3 * (MARKS * width + 8 * place), 3) === 0xffffff
  return Array.from({ length: SIZE.width / 8 }, (_, place) => place).filter(isWhite)
}

test('what is typed before there is a picture waits for it', async () => {
  let draw: (() => void) | undefined
  begin = (front) => {
    draw = () => front.draw(WHOLE)
  }
  const { client } = await view()
  await until('a desktop', () => draw)
  press(client, 30)
  await sleep(500)
  expect(keys()).toEqual([])
  draw!()
  await until('the key', () => keys().length > 0 || undefined)
})

test('a desktop of one pixel is none', async () => {
  await view({ width: 1, height: 1 })
  await until('a desktop', () => visit().painted > 0 || undefined)
  const { width, height } = visit().core!
  expect(width * height).toBeGreaterThanOrEqual(512 * 384)
})

test('a target is never told not to draw, nor to draw a pixel only', async () => {
  const said: string[] = []
  hear = (data) => {
    for (const pdu of parseShare(data)) {
      if (pdu.type !== CONTROL_PDU.data) continue
      const { type, body } = parseShareData(pdu)
      if (type === DATA_PDU.suppressOutput || type === DATA_PDU.refreshRectangle) {
        said.push(`${type} ${Buffer.from(body).toString('hex')}`)
      }
    }
  }
  const { client, seen } = await view()
  await until('a picture', () => seen.updates.length > 0 || undefined)
  const say = (type: number, body: string) =>
    client.connection.sendIo(
      buildShareData({ shareId: SHARE, type, body: Buffer.from(body, 'hex') }, client.connection.user),
    )
  say(DATA_PDU.suppressOutput, '00000000')
  say(DATA_PDU.suppressOutput, '010000000000000000000000')
  say(DATA_PDU.refreshRectangle, '010000000500050005000500')
  press(client, 31)
  await until('the key', () => keys().includes(31) || undefined)
  const all = `00000000${words(SIZE.width - 1, SIZE.height - 1).toString('hex')}`
  expect(said).toEqual([
    `${DATA_PDU.suppressOutput} 01000000${all}`,
    `${DATA_PDU.refreshRectangle} 01000000${all}`,
  ])
})

test.each([
  ['nothing', 0],
  ['a little now and then', 10],
])('a client that takes %s does nothing that is not recorded', async (_what, open) => {
  const done: number[] = []
  begin = (front, tls) => {
    begin = () => undefined
    front.draw(WHOLE)
    // Like real ones, it skips updates that it cannot send, since the picture has changed by then.
    const timer = setInterval(() => {
      if (tls.destroyed) clearInterval(timer)
      else for (let n = 0; n < 20 && tls.writableLength === 0; n++) front.draw(NOISE)
    }, 1)
  }
  act = (front, events, tls) => {
    for (const event of events) {
      if (event.kind !== 'key') continue
      done.push(event.code)
      if (tls.writableLength < SKIPPED) front.draw(mark(event.code))
    }
  }
  const { client, seen } = await view()
  await until('a flood', () => seen.updates.length > 100 || undefined)
  const id = await running()
  client.stream.paused = true
  await sleep(500)
  for (let code = 1; code <= 20; code++) {
    press(client, code)
    if (open > 0) client.stream.paused = false
    await sleep(open)
    client.stream.paused = true
    await sleep(200)
  }
  client.stream.destroy()
  const marks = await recordedMarks(id)
  expect(done.length).toBeGreaterThan(3)
  expect(marks).toEqual(done)
})

test('what is done last is recorded, though its doer has gone', async () => {
  act = (front) => {
    setTimeout(() => front.draw(mark(30)), 300)
  }
  const { client, seen } = await view()
  await until('a picture', () => seen.updates.length > 0 || undefined)
  const id = await running()
  press(client, 30)
  await until('the key', () => keys().length > 0 || undefined)
  client.stream.destroy()
  expect(await recordedMarks(id)).toEqual([30])
})
