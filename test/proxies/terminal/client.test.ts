/** The bytes that a terminal's client has not read, on a real socket. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { TerminalClient } from '../../../proxies/terminal/client.ts'
import type { ClientProtocol } from '../../../proxies/terminal/client-wire.ts'
import type { UrgentData } from '../../../src/contract/urgent-data.ts'

const open: { destroy(): void }[] = []
afterEach(() => {
  for (const one of open.splice(0)) one.destroy()
})

test('they are counted: all of them, and those that still wait in the bastion', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  open.push({ destroy: () => server.close() })
  await once(server, 'listening')
  const accepted = once(server, 'connection')
  const peer = connect((server.address() as { port: number }).port, '127.0.0.1').pause()
  const [socket] = (await accepted) as [Socket]
  open.push(peer, socket)
  const protocol = ((around) => ({
    start: () => undefined,
    stop: () => undefined,
    show: (bytes: Uint8Array) => around.write(bytes),
  })) as ClientProtocol
  const client = new TerminalClient(socket, {} as UrgentData, protocol)
  for (let shown = 0; client.waiting < 100_000; shown++) {
    expect(shown).toBeLessThan(10_000)
    client.show(Buffer.alloc(32_768, 'x'))
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(client.written).toBe(socket.bytesWritten)
  expect(client.waiting).toBe(socket.writableLength)
  peer.resume()
  await once(socket, 'drain')
  expect([client.written, client.waiting]).toEqual([socket.bytesWritten, 0])
})
