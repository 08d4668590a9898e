/** PROXY headers ahead of a protocol, over real connections: cut anywhere, missing, slow, torn, and not asked for. */
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { connect as connectTls, createServer } from 'node:tls'
import { generate } from 'selfsigned'
import { afterEach, expect, test } from 'vitest'
import { acceptShared } from '../../proxies/net/shared-read.ts'
import { type Bound, listenAt, type TcpHandle } from '../../src/sockets/accept.ts'
import { admitByHeader } from '../../src/sockets/admission.ts'
import { ProxyHeaders } from '../../src/sockets/proxy-headers.ts'
import { blockHeader, FAMILIES, field, withChecksum } from '../balancers/headers.ts'
import { until } from '../until.ts'

const HERE = '127.0.0.1'
const BALANCER = '127.0.0.9'
const LINE = Buffer.from('PROXY TCP4 192.0.2.7 198.51.100.1 3000 22\r\n')
const BLOCK = {
  family: FAMILIES.tcp4,
  addresses: Buffer.from('c0000207c63364010bb80016', 'hex'),
}
const CLIENT = { remoteAddress: '192.0.2.7', remotePort: 3000 }

let bound: Bound
let headers: ProxyHeaders
const sockets: Socket[] = []
const told: string[] = []
const admitted: { socket: Socket; text: string }[] = []

afterEach(() => {
  bound?.close()
  headers.close()
  for (const socket of sockets.splice(0)) socket.destroy()
  told.length = 0
  admitted.length = 0
})

function newHeaders(options: { timeMs?: number; maxWaiting?: number } = {}): ProxyHeaders {
  headers = new ProxyHeaders({
    from: [BALANCER],
    timeMs: 60_000,
    ...options,
    onClaimed: (listener, balancer, { address, port }) =>
      told.push(`${listener} claimed ${balancer.address} ${address} ${port}`),
    onRefused: (listener, balancer, refusal, reason) =>
      told.push(`${listener} ${refusal} ${balancer.address}: ${reason}`),
  })
  return headers
}

async function open(options: { timeMs?: number; maxWaiting?: number } = {}): Promise<void> {
  newHeaders(options)
  const take = (handle: TcpHandle | undefined) => {
    if (!handle) return
    const one = { socket: acceptShared(handle), text: '' }
    one.socket.on('data', (data) => {
      one.text += data
    })
    one.socket.on('error', () => undefined)
    sockets.push(one.socket)
    admitted.push(one)
  }
  bound = await listenAt({
    host: HERE,
    port: 0,
    onConnection: (handle) => {
      if (headers.isExpected(handle)) void headers.read('ssh', handle).then(take)
      else take(handle)
    },
  })
}

async function come(from: string, port = bound.port): Promise<Socket> {
  const socket = connect({ host: HERE, port, localAddress: from, noDelay: true })
  sockets.push(socket)
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

const arrival = (n = 1) => until(`connection ${n}`, () => admitted[n - 1])
const word = (what: string) => until(what, () => told.find((line) => line.includes(what)))
/** Resolves when the connection is closed, be it by a reset. */
const closed = (socket: Socket) =>
  new Promise((resolve) => (socket.closed ? resolve(true) : socket.resume().once('close', resolve)))

test.each([
  ['version 1', LINE],
  ['version 2', blockHeader(BLOCK)],
  [
    'version 2 with fields and a checksum',
    withChecksum({ ...BLOCK, fields: [field(0x05, 'x'.repeat(3_000))] }),
  ],
])('%s in one packet with what follows: the protocol gets exactly the rest', async (_title, header) => {
  await open()
  const socket = await come(BALANCER)
  const rest = 'SSH-2.0-client\r\n'.repeat(9_000)
  socket.write(Buffer.concat([header, Buffer.from(rest)]))
  const { socket: server } = await arrival()
  expect(server).toMatchObject(CLIENT)
  expect(told).toEqual([`ssh claimed ${BALANCER} 192.0.2.7 3000`])
  await until('the rest', () => admitted[0]!.text.length >= rest.length || undefined)
  expect(admitted[0]!.text).toBe(rest)
  socket.write('more')
  await until('more', () => admitted[0]!.text.endsWith('more') || undefined)
  server.end('answer')
  expect(String(await once(socket, 'data'))).toBe('answer')
})

test.each([
  ['version 1', LINE],
  ['version 2', withChecksum(BLOCK)],
])('%s byte by byte', async (_title, header) => {
  await open()
  const socket = await come(BALANCER)
  for (const byte of header) {
    await new Promise((resolve) => socket.write(Buffer.of(byte), resolve))
    await new Promise(setImmediate)
  }
  socket.write('rest')
  expect((await arrival()).socket).toMatchObject(CLIENT)
  await until('the rest', () => admitted[0]!.text === 'rest' || undefined)
})

test('a health check is served as the balancer itself', async () => {
  await open()
  const socket = await come(BALANCER)
  socket.write(Buffer.concat([blockHeader({ command: 0, family: 0 }), Buffer.from('rest')]))
  expect((await arrival()).socket.remoteAddress).toBe(BALANCER)
  await until('the rest', () => admitted[0]!.text === 'rest' || undefined)
  expect(told).toEqual([])
})

test('from anywhere else a header is bytes of the protocol', async () => {
  await open()
  const socket = await come('127.0.0.8')
  socket.write(LINE)
  const { socket: server } = await arrival()
  expect(server.remoteAddress).toBe('127.0.0.8')
  await until('the header', () => admitted[0]!.text === String(LINE) || undefined)
})

test('other networks apply to new connections', async () => {
  await open()
  headers.from = ['127.0.0.8/32']
  const former = await come(BALANCER)
  former.write('rest')
  expect((await arrival()).socket.remoteAddress).toBe(BALANCER)
  const later = await come('127.0.0.8')
  later.write(LINE)
  expect((await arrival(2)).socket).toMatchObject(CLIENT)
})

test('a connection without a header is closed at its first byte', async () => {
  await open()
  const socket = await come(BALANCER)
  socket.write('SSH-2.0-client\r\n')
  await closed(socket)
  expect(told).toEqual([`ssh missing ${BALANCER}: expected a PROXY header, got "SSH-2.0-client"`])
})

test('a header that is wrong closes its connection', async () => {
  await open()
  const socket = await come(BALANCER)
  socket.write('PROXY TCP4 192.0.2.7 198.51.100.1 99999 22\r\n')
  await closed(socket)
  expect(told).toEqual([expect.stringContaining(`ssh malformed ${BALANCER}: `)])
})

test('a torn header is told of, a connection without a byte is not', async () => {
  await open()
  const silent = await come(BALANCER)
  silent.end()
  await closed(silent)
  const torn = await come(BALANCER)
  torn.end(LINE.subarray(0, 30))
  await closed(torn)
  expect(told).toEqual([
    `ssh torn ${BALANCER}: expected a whole PROXY header, got 30 bytes of one and the end`,
  ])
})

test('a slow header has its time', async () => {
  await open({ timeMs: 50 })
  const socket = await come(BALANCER)
  socket.write(LINE.subarray(0, 20))
  await closed(socket)
  expect(told[0]).toMatch(/^ssh slow 127.0.0.9: expected a PROXY header in 0.05 s, got (0|20) bytes of one$/)
})

test('silent connections hold no place: the oldest one leaves', async () => {
  await open({ maxWaiting: 2 })
  const first = await come(BALANCER)
  await come(BALANCER)
  const third = await come(BALANCER)
  await closed(first)
  await word('ssh slow')
  third.write(LINE)
  expect((await arrival()).socket).toMatchObject(CLIENT)
})

test('closing ends those that wait, without a word', async () => {
  await open()
  const socket = await come(BALANCER)
  socket.write(LINE.subarray(0, 20))
  await new Promise(setImmediate)
  const gone = closed(socket)
  await until('the connection', () => {
    headers.close()
    return socket.destroyed || undefined
  })
  await gone
  expect(told).toEqual([])
})

test('a server of TLS gets its connections behind the header, and closes', async () => {
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'localhost' }], {
    keyType: 'ec',
  })
  const server = createServer({ cert, key }, (socket) => {
    socket.on('error', () => undefined)
    socket.end(`${socket.remoteAddress} ${socket.remotePort}`)
  })
  admitByHeader(server, 'https', newHeaders())
  server.listen(0, HERE)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const greeting = async (socket: Socket) => {
    const [text] = await once(connectTls({ socket, rejectUnauthorized: false }), 'data')
    return String(text)
  }
  const direct = await come('127.0.0.8', port)
  expect(await greeting(direct)).toBe(`127.0.0.8 ${direct.localPort}`)
  const passed = await come(BALANCER, port)
  passed.write(LINE)
  expect(await greeting(passed)).toBe('192.0.2.7 3000')
  const refused = await come(BALANCER, port)
  refused.write('GET / HTTP/1.1\r\n\r\n')
  await closed(refused)
  expect(told.at(-1)).toContain('https missing')
  for (const socket of sockets.splice(0)) socket.destroy()
  const waiting = await come(BALANCER, port)
  waiting.write('PROXY ')
  const count = () => new Promise<number>((resolve) => server.getConnections((_error, all) => resolve(all)))
  await until('the one that waits', async () => (await count()) === 1 || undefined)
  const over = once(server, 'close')
  server.close()
  headers.close()
  await over
})
