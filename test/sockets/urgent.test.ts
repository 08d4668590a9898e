/** TCP's urgent data through Node's sockets, in both directions. */
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server, Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { dial } from '../../proxies/net/dial.ts'
import { type UrgentData, WITHOUT_URGENCY } from '../../src/contract/urgent-data.ts'
import { openUrgentData } from '../../src/sockets/urgent.ts'
import { until } from '../until.ts'

let urgent: UrgentData
beforeAll(async () => {
  const opened = await openUrgentData()
  if (!('urgent' in opened)) throw new Error(opened.missing)
  urgent = opened.urgent
})

const open: (Server | Socket)[] = []
afterEach(() => {
  for (const one of open.splice(0)) {
    if (one instanceof Socket) one.destroy()
    else one.close()
  }
})

/** Starts a server, and collects its connections. */
async function listen(
  prepare: (server: Server) => void,
): Promise<{ port: number; accepted: Promise<Socket> }> {
  const server = createServer({ pauseOnConnect: true })
  open.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  prepare(server)
  const accepted = once(server, 'connection').then(([socket]) => {
    open.push(socket as Socket)
    return socket as Socket
  })
  return { port: (server.address() as AddressInfo).port, accepted }
}

async function connected(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  open.push(socket)
  await once(socket, 'connect')
  return socket
}

function collect(socket: Socket): () => Buffer {
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  return () => Buffer.concat(chunks)
}

const arrived = (read: () => Buffer, end: string) =>
  until(
    () => `${end}; came: ${read().subarray(-40).toString('latin1')}`,
    () => (read().toString('latin1').endsWith(end) ? read() : undefined),
  )

/** Returns the unread bytes that the system holds for the connection to this port. */
function waitingAt(port: number): number {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n')
  const [fields] = lines
    .map((line) => line.trim().split(/\s+/))
    .filter(([, address, , state]) => address?.endsWith(local) === true && state === ESTABLISHED)
  return Number.parseInt(fields?.[4]?.split(':')[1] ?? '', 16)
}
const ESTABLISHED = '01'

const SYNCH = Uint8Array.of(0xff, 0xf2)

describe('an urgent byte', () => {
  test.each([
    ['is in its place at a server that keeps it', true, 'a\xff\xf2b.'],
    ['is lost at one that does not', false, 'a\xffb.'],
  ])('%s', async (_, keeps, text) => {
    const { port, accepted } = await listen((server) => keeps && urgent.keepInPlace(server))
    const client = await connected(port)
    const read = collect((await accepted).resume())
    client.write('a')
    urgent.write(client, SYNCH)
    client.write('b.')
    expect((await arrived(read, 'b.')).toString('latin1')).toBe(text)
  })

  test.each([
    ['is in its place at a target’s connection that keeps it', true, 'a\xff\xf2b.'],
    ['is lost at one that does not', false, 'a\xffb.'],
  ])('%s', async (_, keeps, text) => {
    const { port, accepted } = await listen(() => undefined)
    const signal = new AbortController().signal
    const back = await dial('127.0.0.1', port, { name: 'srv1', signal, ...(keeps && { urgent }) })
    open.push(back)
    const read = collect(back)
    const target = await accepted
    target.write('a')
    urgent.write(target, SYNCH)
    target.write('b.')
    expect((await arrived(read, 'b.')).toString('latin1')).toBe(text)
  })

  test('is announced by the read before it', async () => {
    const { port, accepted } = await listen((server) => urgent.keepInPlace(server))
    const client = await connected(port)
    const socket = await accepted
    client.write('a')
    urgent.write(client, Uint8Array.of(0x80))
    client.write('b')
    await until('all three before the first read', () => waitingAt(port) === 3 || undefined)
    const reads: [string, boolean][] = []
    socket.on('data', (chunk: Buffer) => reads.push([chunk.toString('latin1'), urgent.isNext(socket)]))
    socket.resume()
    await until('the last', () => reads.at(-1)?.[0].endsWith('b') || undefined)
    expect(reads[0]).toEqual(['a', true])
    expect(reads.slice(1).map(([, next]) => next)).not.toContain(true)
  })
})

test('what waits to be sent is not overtaken', async () => {
  const { port, accepted } = await listen((server) => urgent.keepInPlace(server))
  const client = await connected(port)
  const socket = await accepted
  const much = Buffer.alloc(16 * 1024 * 1024, 0x61)
  client.write(much)
  expect(client.writableLength).toBeGreaterThan(0)
  urgent.write(client, SYNCH)
  client.write('.')
  const read = collect(socket.resume())
  const all = await arrived(read, '\xff\xf2.')
  expect(all).toHaveLength(much.length + 3)
})

test('through TLS it goes as data like others, and nothing beside it', async () => {
  const { port, accepted } = await listen(() => undefined)
  const plain = await connected(port)
  const tls = new TLSSocket(plain, { isServer: false })
  const read = collect((await accepted).resume())
  urgent.write(tls, SYNCH)
  // The beginning of a handshake, without a clear Synch.
  await until('a TLS record', () => read().length > 5 || undefined)
  expect(read()[0]).toBe(22)
  expect(read().includes(Buffer.from(SYNCH))).toBe(false)
  tls.on('error', () => undefined)
})

test('a closed socket is no error', async () => {
  const { port } = await listen(() => undefined)
  const client = await connected(port)
  client.on('error', () => undefined)
  client.destroy()
  urgent.keepInPlace(client)
  urgent.write(client, SYNCH)
  expect(urgent.isNext(client)).toBe(false)
})

test('where there is no way to it, bytes go as others do', async () => {
  const platform = Object.getOwnPropertyDescriptor(process, 'platform')!
  Object.defineProperty(process, 'platform', { ...platform, value: 'darwin' })
  try {
    expect(await openUrgentData()).toEqual({ missing: 'not known how on darwin' })
  } finally {
    Object.defineProperty(process, 'platform', platform)
  }
  const { port, accepted } = await listen((server) => WITHOUT_URGENCY.keepInPlace(server))
  const client = await connected(port)
  const read = collect((await accepted).resume())
  WITHOUT_URGENCY.write(client, SYNCH)
  expect(await arrived(read, '\xff\xf2')).toEqual(Buffer.from(SYNCH))
  expect(WITHOUT_URGENCY.isNext(client)).toBe(false)
})
