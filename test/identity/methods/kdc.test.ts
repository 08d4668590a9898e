/** KDCs that hang, drip, lie about lengths, or are answered for by others. */
import { createSocket, type Socket as Datagrams } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { Kdc, KdcError } from '../../../src/identity/methods/kerberos/kdc.ts'

const TIMEOUT_MS = 400
const never = new AbortController().signal
const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

interface Served {
  kdc: Kdc
  /** Number of connections that are still open. */
  open: () => number
}
type Talk = (socket: Socket) => void
type Told = (datagrams: Datagrams, port: number) => void

async function serve(talk: Talk, told: Told = () => undefined): Promise<Served> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    socket.once('data', () => talk(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const datagrams = createSocket('udp4')
  datagrams.on('message', (_request, { port: from }) => told(datagrams, from))
  datagrams.bind(port, '127.0.0.1')
  await once(datagrams, 'listening')
  closing.push(() => {
    datagrams.close()
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return {
    kdc: new Kdc({ host: '127.0.0.1', port, timeoutMs: TIMEOUT_MS }),
    open: () => sockets.size,
  }
}
const framed = (length: number, ...bytes: number[]) => {
  const head = Buffer.alloc(4)
  head.writeUInt32BE(length)
  return Buffer.concat([head, Buffer.from(bytes)])
}
const REQUEST = Buffer.from('request')

test('one that hangs is left after the time-out, and no connection stays', async () => {
  const { kdc, open } = await serve(() => undefined)
  await expect(kdc.ask(REQUEST, never)).rejects.toThrow(`no answer within ${TIMEOUT_MS} ms`)
  await expect.poll(open).toBe(0)
})

test('one that drips has the same time for all of its answer', async () => {
  const { kdc, open } = await serve((socket) => {
    socket.write(framed(60_000))
    const drip = setInterval(() => socket.write('x'), 10)
    socket.on('close', () => clearInterval(drip))
  })
  await expect(kdc.ask(REQUEST, never)).rejects.toBeInstanceOf(KdcError)
  await expect.poll(open).toBe(0)
})

test.each([
  ['announces too much', framed(2 ** 32 - 1), 'at most 65536 bytes was expected, got 4294967295'],
  ['ends within its answer', framed(5, 1, 2), 'closed the connection without a whole answer'],
  ['says nothing', Buffer.alloc(0), 'closed the connection without a whole answer'],
])('one that %s is an error in words', async (_case, bytes, message) => {
  const { kdc } = await serve((socket) => socket.end(bytes))
  await expect(kdc.ask(REQUEST, never)).rejects.toThrow(message)
})

test('an answer in single bytes is whole, and more than it announced is left out', async () => {
  const { kdc } = await serve(async (socket) => {
    for (const byte of framed(3, 1, 2, 3, 4)) {
      socket.write(Uint8Array.of(byte))
      await new Promise(setImmediate)
    }
  })
  expect(await kdc.ask(REQUEST, never)).toEqual(Buffer.from([1, 2, 3]))
})

test('a datagram of another sender is no answer', async () => {
  const other = createSocket('udp4')
  closing.push(() => other.close())
  const { kdc } = await serve(
    () => undefined,
    (datagrams, port) => {
      other.send('forged', port, '127.0.0.1', () => datagrams.send('real', port, '127.0.0.1'))
    },
  )
  expect((await kdc.ask(REQUEST, never)).toString()).toBe('real')
})

test('a sign-in that is given up ends at once', async () => {
  const stop = new AbortController()
  const { kdc, open } = await serve(() => stop.abort())
  await expect(kdc.ask(Buffer.alloc(2000), stop.signal)).rejects.toBeInstanceOf(KdcError)
  await expect.poll(open).toBe(0)
})
