/**
 * The cost of an RDP desktop: processor time of the broker per MiB of pictures, its addition to the round
 * trip of the mouse, and processor time and memory of light sessions. Run it by hand; it measures and never
 * fails. Target and client run in this program, so that they cost the broker nothing; both use TLS.
 *
 *   npm run bench -- --only rdp [--size MIB] [--sessions N] [--unrecorded]
 */
import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { buildFastPathUpdate } from '../../proxies/rdp/codec/fast-path-output.ts'
import { buildFastPathInput, type InputEvent } from '../../proxies/rdp/codec/input.ts'
import { buildDataIndication } from '../../proxies/rdp/codec/mcs.ts'
import { buildShareData, DATA_PDU } from '../../proxies/rdp/codec/share.ts'
import { UPDATE } from '../../proxies/rdp/codec/updates.ts'
import { FrontConnection, IO_CHANNEL } from '../../proxies/rdp/connection/front-connection.ts'
import { FrontDesktop } from '../../proxies/rdp/connection/front-desktop.ts'
import { startRdpDesktop } from '../e2e/rdp-desktops.ts'
import { cpuSeconds, quiet } from '../peers/process.ts'
import { openDoor } from '../proxies/rdp/connection/listener.ts'
import { type Desktop, openTarget, takeDesktop } from '../proxies/rdp/sessions.ts'
import { until } from '../until.ts'
import { flags } from './desktop-flags.ts'
import { median, percentile, table } from './stats.ts'

const MIB = 1024 * 1024
const ECHOES = 500
/** A light session: updates per second of this many bytes, and as many movements of the mouse. */
const LIGHT = { rate: 10, bytes: 2048, seconds: 10 }
/** Time within which indexing has begun. */
const INDEXING_MS = 2_000
/** Scancodes that the target reacts to. */
const FAST = 0x21
const SLOW = 0x1f

const bytes = Number(flags.size ?? 256) * MIB
const sessions = Number(flags.sessions ?? 50)

/** Makes one rectangle of random pixels, of about this many bytes. */
function bitmap(length: number): Buffer {
  const side = Math.max(1, Math.floor(Math.sqrt(length / 4)))
  const data = Buffer.alloc(22 + side * side * 4)
  const head = [UPDATE.bitmap, 1, 0, 0, side - 1, side - 1, side, side, 32, 0, side * side * 4]
  for (const [index, word] of head.entries()) data.writeUInt16LE(word, index * 2)
  for (let at = 22; at < data.length; at++) data[at] = Math.floor(Math.random() * 256)
  return data
}
/** A MiB in the form of FreeRDP's servers and of xrdp: in PDUs of some 16 and 8 KiB. */
const piece = (length: number, frame: (data: Buffer) => Buffer[]): Buffer => {
  const [pdus] = [frame(bitmap(length))]
  const one = Buffer.concat(pdus)
  return Buffer.concat(Array.from({ length: Math.ceil(MIB / one.length) }, () => one))
}
const onFastPath = (data: Buffer) => buildFastPathUpdate({ code: UPDATE.bitmap, data })
const onSlowPath = (data: Buffer) => [
  buildDataIndication(IO_CHANNEL, buildShareData({ shareId: 0x000103ea, type: DATA_PDU.update, body: data })),
]
const BULK: Readonly<Record<number, Buffer>> = {
  [FAST]: piece(15_000, onFastPath),
  [SLOW]: piece(8_000, onSlowPath),
}
const dot = bitmap(4)
const light = Buffer.concat(onFastPath(bitmap(LIGHT.bytes)))

const targets = new Set<TLSSocket>()

/** Serves as the target: draws one dot, one for each movement of the mouse, and many pictures for a key. */
function serve(tls: TLSSocket, requestedProtocols: number): void {
  targets.add(tls)
  tls.on('close', () => targets.delete(tls))
  let desktop: FrontDesktop | undefined
  const front: FrontConnection = new FrontConnection({
    requestedProtocols,
    write: (pdu) => tls.write(pdu),
    visitor: {
      settings: () => undefined,
      logon: () => {
        front.licensed()
        desktop = new FrontDesktop({
          desktop: { width: 1920, height: 1080, depth: 32 },
          user: front.user,
          sendIo: (data) => front.sendIo(data),
          sendFastPath: (pdu) => front.sendFastPath(pdu),
          visitor: {
            paint: () => desktop?.draw({ code: UPDATE.bitmap, data: dot }),
            shutdown: () => undefined,
            input: (events) => {
              for (const event of events) {
                if (event.kind !== 'key') desktop?.draw({ code: UPDATE.bitmap, data: dot })
                else if (event.isDown) send(tls, BULK[event.code]!)
              }
            },
          },
        })
      },
      license: () => undefined,
      io: (data) => desktop?.receiveIo(data),
      channel: () => undefined,
      fastPath: (pdu) => desktop?.receiveFastPath(pdu),
      disconnect: () => tls.end(),
    },
  })
  tls.on('data', (chunk: Buffer) => front.receive(chunk))
}

function send(tls: TLSSocket, mebibyte: Buffer): void {
  let left = Math.ceil(bytes / mebibyte.length)
  const more = (): void => {
    if (left-- > 0) tls.write(mebibyte, more)
  }
  more()
}

const door = await openDoor({ serve })
const ACCOUNT = { account: 'root', password: 'Target-Pass1' }
const bastion = await startRdpDesktop()
const { broker } = bastion
const { login } = await bastion.add({
  name: 'bench',
  port: door.port,
  ...ACCOUNT,
  policy: { logon_wait: 0 },
  authorization: { is_recorded: !flags.unrecorded },
})

interface Seat {
  desktop: Desktop
  say(event: InputEvent): void
  /** Resolves when this many bytes have come since the last call. */
  received(wanted: number): Promise<void>
}

type Route = 'direct' | 'bastion'

async function sit(route: Route): Promise<Seat> {
  const to =
    route === 'direct'
      ? { port: door.port, login: ACCOUNT.account, password: ACCOUNT.password }
      : { port: bastion.port, login, password: bastion.password }
  const target = await openTarget({ ...to, rdp: { security: ['tls'], logonWait: 0 } })
  const desktop = takeDesktop(target)
  await until('the first dot', () => desktop.updates.length > 0 || undefined)
  const { stream, connection } = target
  let count = 0
  let wanted = Infinity
  let onWanted = (): void => undefined
  stream.onData = (chunk) => {
    count += chunk.length
    if (count >= wanted) onWanted()
  }
  return {
    desktop,
    say: (event) => connection.sendFastPath(buildFastPathInput([event])),
    received: (more) =>
      new Promise((resolve) => {
        count = 0
        wanted = more
        onWanted = resolve
      }),
  }
}

const move = (x: number): InputEvent => ({ kind: 'pointer', flags: 0x0800, x, y: 1 })

async function bulk(route: Route, key: number): Promise<{ rate: number; cpu: number }> {
  const mebibyte = BULK[key]!
  const total = Math.ceil(bytes / mebibyte.length) * mebibyte.length
  const seat = await sit(route)
  await quiet(broker.pid)
  const before = cpuSeconds(broker.pid)
  const begin = performance.now()
  const all = seat.received(total)
  seat.say({ kind: 'key', code: key, extended: 0, isDown: true })
  await all
  const seconds = (performance.now() - begin) / 1000
  await quiet(broker.pid)
  const cpu = ((cpuSeconds(broker.pid) - before) * 1000 * MIB) / total
  seat.desktop.close()
  await allEnded()
  return { rate: total / MIB / seconds, cpu }
}

async function mouse(route: Route): Promise<number[]> {
  const seat = await sit(route)
  const samples: number[] = []
  for (let x = 0; x < ECHOES; x++) {
    const back = seat.received(dot.length)
    const begin = performance.now()
    seat.say(move(x))
    await back
    samples.push(performance.now() - begin)
    await sleep(2)
  }
  seat.desktop.close()
  await allEnded()
  return samples
}

/** Returns the broker's resident memory, in MiB. */
function resident(): number {
  const status = readFileSync(`/proc/${broker.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024
}

/** Returns the processor time of light sessions, as a fraction of one processor, and their memory in MiB. */
async function many(): Promise<{ cpu: number; memory: number }> {
  await quiet(broker.pid)
  const memory = resident()
  const seats: Seat[] = []
  for (let number = 0; number < sessions; number++) seats.push(await sit('bastion'))
  await quiet(broker.pid)
  const grown = resident() - memory
  const before = cpuSeconds(broker.pid)
  const begin = performance.now()
  for (let tick = 0; tick < LIGHT.rate * LIGHT.seconds; tick++) {
    for (const tls of targets) tls.write(light)
    for (const { say } of seats) say(move(tick))
    await sleep(1000 / LIGHT.rate)
  }
  const cpu = (cpuSeconds(broker.pid) - before) / ((performance.now() - begin) / 1000)
  for (const { desktop } of seats) desktop.close()
  await allEnded()
  return { cpu, memory: grown }
}

/**
 * Waits for the index of each recording, which is made after its session, so that it does not count in the
 * next measurement.
 */
async function allEnded(): Promise<void> {
  await until('the end of all sessions', async () => {
    const rows = await broker.must<unknown[]>('GET', '/sessions?status=current')
    return rows.length === 0 || undefined
  })
  await sleep(INDEXING_MS)
  await quiet(broker.pid)
}

const rows: string[][] = [['', 'MiB/s', 'broker CPU, ms/MiB', 'mouse, median ms', 'p99']]
for (const route of ['direct', 'bastion'] as const) {
  for (const [name, key] of [
    ['fast path', FAST],
    ['slow path', SLOW],
  ] as const) {
    // The first one warms up.
    await bulk(route, key)
    const { rate, cpu } = await bulk(route, key)
    const samples = await mouse(route)
    rows.push([
      `${route}, ${name}`,
      rate.toFixed(0),
      route === 'direct' ? '-' : cpu.toFixed(2),
      median(samples).toFixed(2),
      percentile(samples, 0.99).toFixed(2),
    ])
  }
}
process.stdout.write(`${table(rows)}\n\n`)
if (sessions > 0) {
  const { cpu, memory } = await many()
  process.stdout.write(
    `${sessions} light sessions: ${(cpu * 100).toFixed(0)} % of one processor, ${memory.toFixed(0)} MiB\n`,
  )
}
await bastion.stop()
await door.close()
