/** A transport's count of bytes sent and not yet read by its peer, on a real socket. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { Transport } from '../../../../proxies/ssh/transport/transport.ts'

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
