/**
 * The cost of a desktop: processor time of the broker per GiB of pixels, its addition to a pointer's round
 * trip, and the memory of idle desktops. Run it by hand; it measures and never fails. Target and viewer run
 * in this program, so that they cost the broker nothing; the target has no security, the viewer uses clear
 * text or TLS.
 *
 *   npm run bench -- --only vnc [--size MIB] [--sessions N] [--unrecorded]
 */
import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ByteStream } from '../../proxies/net/byte-stream.ts'
import { openVncTarget } from '../../proxies/vnc/back.ts'
import { encodePointer, encodeUpdateRequest } from '../../proxies/vnc/codec/client-encoder.ts'
import { ClientMessageReader } from '../../proxies/vnc/codec/client-messages.ts'
import { RGB888 } from '../../proxies/vnc/codec/pixel-format.ts'
import { encodeRectangleHeader, encodeUpdateHeader } from '../../proxies/vnc/codec/server-encoder.ts'
import { encodeServerInit } from '../../proxies/vnc/codec/server-init.ts'
import type { VncSecurityType } from '../../src/model/vnc-options.ts'
import { startDesktop } from '../e2e/desktops.ts'
import { cpuSeconds, quiet } from '../peers/process.ts'
import { trustingGate, vncSession } from '../proxies/vnc/sessions.ts'
import { until } from '../until.ts'
import { flags } from './desktop-flags.ts'
import { median, percentile, table } from './stats.ts'

const MIB = 1024 * 1024
const INIT = { width: 1920, height: 1080, format: RGB888, name: 'bench' }
const ALL = { x: 0, y: 0, width: INIT.width, height: INIT.height }
const ECHOES = 500
/** Time within which indexing has begun. */
const INDEXING_MS = 2_000
const RAW = 0

const bytes = Number(flags.size ?? 1024) * MIB
const sessions = Number(flags.sessions ?? 50)

const update = (area: typeof ALL, fill: number): Buffer =>
  Buffer.concat([
    encodeUpdateHeader(1),
    encodeRectangleHeader(area, RAW),
    Buffer.alloc(area.width * area.height * 4, fill),
  ])
const screenful = update(ALL, 0x5a)
const dot = update({ x: 0, y: 0, width: 1, height: 1 }, 1)

/** Called when the target is requested to send its whole picture. Afterwards only the pointer changes it. */
let onRequest: (socket: Socket) => void = (socket) => socket.write(dot)

const server = createServer({ noDelay: true }, (socket) => {
  const says = [Buffer.of(1, 1), Buffer.alloc(4), encodeServerInit(INIT)]
  const reader = new ClientMessageReader((message) => {
    if (message.kind === 'pointer') socket.write(dot)
    else if (message.kind === 'update-request' && !message.isIncremental) onRequest(socket)
  })
  socket.on('error', () => undefined)
  socket.write('RFB 003.008\n')
  socket.on('data', (data: Buffer) => {
    const next = says.shift()
    if (next) socket.write(next)
    else reader.feed(data)
  })
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const targetPort = (server.address() as { port: number }).port
const desktop = await startDesktop({
  port: targetPort,
  policy: { security_types: ['none'] },
  authorization: { is_recorded: !flags.unrecorded },
})

async function view(type: VncSecurityType | 'direct'): Promise<ByteStream> {
  const { login, password } = desktop
  const session =
    type === 'direct'
      ? vncSession({ port: targetPort, types: ['none'] })
      : vncSession({ port: desktop.port, login, password, types: [type] })
  const { signal } = new AbortController()
  const { stream } = await openVncTarget(session, { gate: trustingGate(), signal, isShared: true })
  return stream
}

/** Resolves when this many bytes have come. */
function received(stream: ByteStream, wanted: number): Promise<void> {
  return new Promise((resolve) => {
    let count = 0
    stream.onData = (chunk) => {
      count += chunk.length
      if (count >= wanted) resolve()
    }
    stream.paused = false
  })
}

async function bulk(type: VncSecurityType | 'direct'): Promise<{ rate: number; cpu: number }> {
  const count = Math.ceil(bytes / screenful.length)
  onRequest = (socket) => {
    let left = count
    const more = (): void => {
      if (left-- > 0) socket.write(screenful, more)
    }
    more()
  }
  const stream = await view(type)
  await quiet(desktop.broker.pid)
  const before = cpuSeconds(desktop.broker.pid)
  const begin = performance.now()
  const all = received(stream, count * screenful.length)
  stream.write(encodeUpdateRequest(false, ALL))
  await all
  const seconds = (performance.now() - begin) / 1000
  await quiet(desktop.broker.pid)
  const gib = (count * screenful.length) / (1024 * MIB)
  const cpu = (cpuSeconds(desktop.broker.pid) - before) / gib
  stream.destroy()
  await allEnded()
  return { rate: (gib * 1024) / seconds, cpu }
}

async function pointer(type: VncSecurityType | 'direct'): Promise<number[]> {
  onRequest = (socket) => socket.write(dot)
  const stream = await view(type)
  const first = received(stream, dot.length)
  stream.write(encodeUpdateRequest(false, ALL))
  await first
  const samples: number[] = []
  for (let move = 0; move < ECHOES; move++) {
    const back = received(stream, dot.length)
    const begin = performance.now()
    stream.write(encodePointer(move, move, 0))
    await back
    samples.push(performance.now() - begin)
    await sleep(2)
  }
  stream.destroy()
  await allEnded()
  return samples
}

/** Returns the broker's resident memory, in MiB. */
function resident(): number {
  const status = readFileSync(`/proc/${desktop.broker.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024
}

async function idle(): Promise<number> {
  onRequest = (socket) => socket.write(screenful)
  await quiet(desktop.broker.pid)
  const before = resident()
  const streams: ByteStream[] = []
  for (let number = 0; number < sessions; number++) {
    const stream = await view('tlsplain')
    const shown = received(stream, screenful.length)
    stream.write(encodeUpdateRequest(false, ALL))
    await shown
    streams.push(stream)
  }
  await quiet(desktop.broker.pid)
  const grown = resident() - before
  for (const stream of streams) stream.destroy()
  await allEnded()
  return grown
}

/**
 * Waits for the index of each recording, which is made after its session, so that it does not count in the
 * next measurement.
 */
async function allEnded(): Promise<void> {
  await until('the end of all sessions', async () => {
    const rows = await desktop.broker.must<unknown[]>('GET', '/sessions?status=current')
    return rows.length === 0 || undefined
  })
  await sleep(INDEXING_MS)
  await quiet(desktop.broker.pid)
}

const ROUTES = ['direct', 'plain', 'tlsplain'] as const
const NAMES = { direct: 'direct', plain: 'in clear text', tlsplain: 'inside TLS' } as const
const rows: string[][] = [['', 'MiB/s', 'broker CPU, s/GiB', 'pointer, median ms', 'p99']]
for (const route of ROUTES) {
  // The first one warms up.
  await bulk(route)
  const { rate, cpu } = await bulk(route)
  const samples = await pointer(route)
  rows.push([
    NAMES[route],
    rate.toFixed(0),
    route === 'direct' ? '-' : cpu.toFixed(2),
    median(samples).toFixed(2),
    percentile(samples, 0.99).toFixed(2),
  ])
}
await idle()
process.stdout.write(`${table(rows)}\n\n`)
process.stdout.write(`memory of ${sessions} idle desktops inside TLS: ${(await idle()).toFixed(0)} MiB\n`)
await desktop.stop()
server.close()
process.exit(0)
