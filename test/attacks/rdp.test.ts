/**
 * Attacks 10 and 43 over RDP at a whole broker: connections that never sign in, and peers that flood or never
 * read.
 */
import { Buffer } from 'node:buffer'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { COLOUR } from '../../proxies/desktop/screens/palette.ts'
import type { RdpTarget } from '../../proxies/rdp/back/target.ts'
import { buildFastPathInput } from '../../proxies/rdp/codec/input.ts'
import { BackNegotiation } from '../../proxies/rdp/connection/back-negotiation.ts'
import type { FrontDesktop } from '../../proxies/rdp/connection/front-desktop.ts'
import { encodeCanvas } from '../../proxies/rdp/local/bitmaps.ts'
import { Canvas } from '../../src/drawing/canvas.ts'
import type { ReachableDesktop } from '../e2e/desktop-targets.ts'
import { type RdpDesktop, startRdpDesktop } from '../e2e/rdp-desktops.ts'
import { type Door, openDoor } from '../proxies/rdp/connection/listener.ts'
import { openTarget, takeDesktop } from '../proxies/rdp/sessions.ts'
import { until } from '../until.ts'
import { residentOf } from './setting.ts'

/** The most that one of them may add to the broker's memory, in KiB. */
const ALLOWED = 96 * 1024
/** Longer than filling that would take if nothing bounded it. */
const FLOOD_MS = 2_000
/** PTRFLAGS_MOVE (MS-RDPBCGR 2.2.8.1.1.3.1.1.3). */
const POINTER_MOVE = 0x0800

const canvas = new Canvas(800, 600)
const colours = Object.values(COLOUR)
for (let at = 0; at < 100_000; at++) {
  canvas.fill((at * 7919) % 799, (at * 104_729) % 599, 1, 1, colours[at % colours.length]!)
}
const PICTURE = encodeCanvas(0, 0, canvas, 16)
const PICTURE_SIZE = PICTURE.reduce((sum, { data }) => sum + data.length, 0)

let desktop: RdpDesktop
let target: Door
let reach: ReachableDesktop
/** Called when a client sees the target's desktop. */
let after: (front: FrontDesktop, tls: TLSSocket) => void = () => undefined
const sockets: { destroy(): void }[] = []

beforeAll(async () => {
  desktop = await startRdpDesktop({ config: { login_grace: '3s' } })
  target = await openDoor({ paint: (front, _size, tls) => after(front, tls) })
  const policy = { security: ['tls'], logon_wait: 0 }
  reach = await desktop.add({ name: 'false', port: target.port, account: 'any', password: 'any', policy })
})
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
  after = () => undefined
})
afterAll(async () => {
  await desktop?.stop()
  await target?.close()
})

/** Connects as a client that sends login and password inside TLS. */
async function view(): Promise<RdpTarget> {
  const { port, password } = desktop
  const rdp = { security: ['tls'], logonWait: 0 } as const
  const client = await openTarget({ port, login: reach.login, password, rdp: { ...rdp } })
  sockets.push(client.stream)
  return client
}

/** The stages at which a connection stops. */
const STAGES: ((socket: Socket) => void)[] = [
  () => undefined,
  (socket) => socket.write(Buffer.from('0300002c', 'hex')),
  (socket) => socket.write(request()),
  (socket) => socket.once('data', () => socket.write(Buffer.from('16030102', 'hex'))).write(request()),
  (socket) => encrypted(socket, Buffer.alloc(0)),
  // The begin of a Connect Initial of 65535 bytes.
  (socket) => encrypted(socket, Buffer.from('0300ffff02f0807f6582fff0', 'hex')),
]
const request = (): Uint8Array => new BackNegotiation({ protocols: ['tls'], login: 'ops1' }).request

function encrypted(socket: Socket, bytes: Buffer): void {
  socket.once('data', () => {
    const tls = connectTls({ socket, rejectUnauthorized: false })
    tls.on('error', () => undefined)
    tls.on('secureConnect', () => tls.write(bytes))
  })
  socket.write(request())
}

test('connections that stop in the middle of it are cut, and others get in meanwhile', async () => {
  let closed = 0
  for (let n = 0; n < 60; n++) {
    const socket = connect(desktop.port, '127.0.0.1')
    sockets.push(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => closed++)
    socket.on('data', () => undefined)
    STAGES[n % STAGES.length]!(socket)
  }
  let drawn = 0
  after = () => drawn++
  takeDesktop(await view())
  await until('a desktop', () => drawn > 0 || undefined)
  await until(
    () => `the end of 60 connections; ended have ${closed}`,
    () => closed === 60 || undefined,
    20_000,
  )
})

/** Returns the broker's largest memory for a while, minus its memory before. */
async function growth(): Promise<number> {
  const before = residentOf(desktop)
  let most = before
  for (const end = Date.now() + FLOOD_MS; Date.now() < end; await sleep(50)) {
    most = Math.max(most, residentOf(desktop))
  }
  return most - before
}

test('a target that floods a client which has stopped reading is stopped, and takes no memory', async () => {
  let sent = 0
  after = (front, tls) => {
    const timer = setInterval(() => {
      if (tls.destroyed) clearInterval(timer)
      else if (tls.writableLength === 0) {
        for (const update of PICTURE) front.draw(update)
        sent += PICTURE_SIZE
      }
    }, 1)
  }
  const client = await view()
  const seen = takeDesktop(client)
  await until('a flood', () => sent > 2 * PICTURE_SIZE || undefined)
  client.stream.paused = true
  expect(await growth()).toBeLessThan(ALLOWED)
  // The flood is recorded for a while, and then stops.
  let held = 0
  await until('the end of the flood', async () => {
    held = sent
    await sleep(300)
    return sent === held || undefined
  })
  client.stream.paused = false
  await until('more', () => sent > held + 3 * PICTURE_SIZE || undefined)
  expect(seen.error).toBeUndefined()
})

test('a client that floods a target which has stopped reading is stopped, and takes no memory', async () => {
  let isReading = true
  after = (_front, tls) => {
    isReading = false
    tls.pause()
  }
  const client = await view()
  const seen = takeDesktop(client)
  await until('a target that does not read', () => isReading === false || undefined)
  const events = Array.from({ length: 15 }, (_, n) => {
    return { kind: 'pointer', flags: POINTER_MOVE, x: n, y: 5 } as const
  })
  const pdu = buildFastPathInput(events)
  const moves = Buffer.concat(Array.from({ length: 512 }, () => pdu))
  let sent = 0
  const timer = setInterval(() => {
    if (client.stream.congested || client.stream.closed) return
    sent += moves.length
    client.stream.write(moves)
  }, 1)
  try {
    expect(await growth()).toBeLessThan(ALLOWED)
    const held = sent
    await sleep(500)
    expect([seen.isClosed, client.stream.congested, sent]).toEqual([false, true, held])
  } finally {
    clearInterval(timer)
  }
})
