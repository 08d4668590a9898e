/** A transport on a real socket: its counts of bytes, and the packets that it reads in ssh2's place. */
import { EventEmitter, once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { connectShared } from '../../../../proxies/net/shared-read.ts'
import { REKEY_LIMITS } from '../../../../proxies/ssh/transport/limits.ts'
import { type RekeyLimits, Transport } from '../../../../proxies/ssh/transport/transport.ts'
import { until } from '../../../until.ts'
import { pairOf, SUITES } from './ciphers.ts'

/** The fields of ssh2's protocol that a transport releases. */
const unused = () => ({ _offer: { lists: { all: Buffer.alloc(0) } }, _handlers: {} })

const open: { destroy(): void }[] = []
afterEach(() => {
  for (const one of open.splice(0)) one.destroy()
})

/** A transport to a peer that reads nothing. Its packets are their payloads. */
async function unread() {
  const server = createServer().listen(0, '127.0.0.1')
  open.push({ destroy: () => server.close() })
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const accepted = once(server, 'connection')
  const peer = connect({ port, host: '127.0.0.1' }).pause()
  const [socket] = (await accepted) as [Socket]
  open.push(peer, socket)
  const protocol = {
    ...unused(),
    _onPayload: () => undefined,
    _onWrite: (bytes: Uint8Array) => void socket.write(bytes),
    _kexinit: undefined as Buffer | undefined,
    _queue: undefined,
    _cipher: { encrypt: (packet: Buffer) => protocol._onWrite(packet) },
    _packetRW: {
      write: {
        allocStart: 0,
        alloc: (size: number) => Buffer.alloc(size),
        finalize: (packet: Buffer) => packet,
      },
    },
  }
  const transport = new Transport({ _protocol: protocol, on: () => undefined }, socket, { strict: false })
  return { transport, protocol, socket, peer }
}

test('all bytes count, and those that still wait in the bastion are counted apart', async () => {
  const { transport, socket, peer } = await unread()
  for (let sent = 0; transport.waiting < 100_000; sent++) {
    expect(sent).toBeLessThan(10_000)
    transport.send(Buffer.alloc(32_768))
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(transport.written).toBe(socket.bytesWritten)
  expect(transport.waiting).toBe(socket.writableLength)
  peer.resume()
  await once(socket, 'drain')
  expect(transport.waiting).toBe(0)
  expect(transport.written).toBe(socket.bytesWritten)
})

test('bytes that wait for the end of a key exchange count too', async () => {
  const { transport, protocol } = await unread()
  transport.send(Buffer.alloc(10))
  protocol._kexinit = Buffer.alloc(1)
  transport.send(Buffer.alloc(100))
  expect([transport.written, transport.waiting]).toEqual([110, 100])
})

/** A transport after its sign-in, with ciphers as a key exchange makes them. */
async function signedIn(suite: (typeof SUITES)[number], rekey: RekeyLimits = REKEY_LIMITS) {
  const server = createServer().listen(0, '127.0.0.1')
  open.push({ destroy: () => server.close() })
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const accepted = once(server, 'connection')
  const socket = connectShared({ port, host: '127.0.0.1' })
  const [peer] = (await accepted) as [Socket]
  open.push(peer, socket)
  const [up, down] = [pairOf(suite), pairOf(suite)]
  const library = new EventEmitter()
  const errors: unknown[] = []
  library.on('error', (error) => errors.push(error))
  const protocol = {
    ...unused(),
    _onPayload: () => undefined,
    _onPacket: () => undefined,
    _onWrite: (bytes: Uint8Array) => void socket.write(bytes),
    _decipher: up.decipher,
    _cipher: down.cipher,
    _kexinit: undefined as Buffer | undefined,
    _queue: undefined,
    rekeys: 0,
    rekey() {
      this.rekeys++
      this._kexinit = Buffer.alloc(1)
    },
  }
  const transport = new Transport(Object.assign(library, { _protocol: protocol }), socket, {
    strict: false,
    rekey,
  })
  // ssh2 gives its ciphers the transport's function.
  up.decipher._onPayload = protocol._onPayload
  const messages: Buffer[] = []
  transport.onMessage = (payload) => messages.push(Buffer.from(payload))
  socket.resume()
  return { transport, protocol, socket, peer, up, down, errors, messages }
}

test.each(SUITES.map((suite) => ({ suite, name: suite.join(' ') })))(
  'a changed packet ends the connection behind what came before it: $name',
  async ({ suite }) => {
    const { transport, socket, peer, up, down, errors, messages } = await signedIn(suite)
    const reply = Buffer.alloc(5000, 99)
    transport.onMessage = (payload) => {
      messages.push(Buffer.from(payload))
      transport.send(reply)
    }
    const good = Buffer.alloc(3000, 94)
    const received: Buffer[] = []
    peer.on('data', (bytes) => received.push(bytes))
    const ended = once(peer, 'end')
    const first = up.seal(good)
    const changed = up.seal(good)
    changed[changed.length - 1]! ^= 1
    peer.write(Buffer.concat([first, changed, up.seal(good)]))
    await ended
    await until('the end of the connection', () => socket.destroyed || undefined)
    expect(messages).toEqual([good])
    expect(errors.map(String)).toEqual([
      'MalformedError: a packet with a valid MAC was expected, found a changed one',
    ])
    expect(down.open(Buffer.concat(received))).toEqual([reply])
    expect(transport.closed).toBe(true)
    expect(transport.failure).toBe(
      'the target broke the SSH protocol: a packet with a valid MAC was expected, found a changed one',
    )
  },
)

test('a length that no packet has ends the connection at once', async () => {
  const { peer, errors, messages } = await signedIn(['aes128-gcm@openssh.com'])
  const ended = once(peer.resume(), 'end')
  peer.write(Buffer.from('7fffffff', 'hex'))
  await ended
  expect(messages).toEqual([])
  expect(String(errors[0])).toContain("a packet's length was expected, found 2147483647")
})

test.each([
  ['ignored ones', Buffer.of(2, 0, 0, 0, 0)],
  ['empty ones', Buffer.alloc(0)],
])('packets of all kinds use up the keys: %s', async (_what, payload) => {
  const { protocol, peer, up } = await signedIn(['aes128-gcm@openssh.com'], { ...REKEY_LIMITS, packets: 10 })
  const seal = (count: number) => Buffer.concat(Array.from({ length: count }, () => up.seal(payload)))
  peer.write(seal(9))
  await until('nine packets', () => (up.decipher.inSeqno === 9 ? true : undefined))
  expect(protocol.rekeys).toBe(0)
  peer.write(seal(1))
  await until('a rekey', () => (protocol.rekeys > 0 ? true : undefined))
  expect(protocol.rekeys).toBe(1)
})
