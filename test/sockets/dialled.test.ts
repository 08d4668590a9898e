import { type AddressInfo, createServer, Socket } from 'node:net'
import { expect, test } from 'vitest'
import type { TcpHandle } from '../../src/sockets/accept.ts'
import { arrive, keepDialled, takeDialled } from '../../src/sockets/dialled.ts'
import { connectPrivileged } from '../../src/sockets/privileged-port.ts'

const fake = (): TcpHandle => ({ fd: -1, getpeername: () => 0, close: () => undefined })

test('a connection is there for the one who has its number, once', async () => {
  const handle = fake()
  const number = keepDialled(handle)
  expect(await takeDialled(number)).toBe(handle)
  const again = takeDialled(number)
  const other = fake()
  arrive(number, other)
  expect(await again).toBe(other)
})

test('a connection that comes after its number is waited for', async () => {
  const number = keepDialled(fake()) + 1_000_000
  const taken = takeDialled(number)
  const handle = fake()
  arrive(number, handle)
  expect(await taken).toBe(handle)
})

test.runIf(process.getuid?.() === 0)(
  'a target sees a port below 1024, and what it says at once is not lost',
  async () => {
    const server = createServer((client) => client.end(`from ${client.remotePort}`)).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const handle = await connectPrivileged('127.0.0.1', (server.address() as AddressInfo).port, 5_000)
    const socket = new Socket({ handle } as object)
    let said = ''
    for await (const piece of socket) said += piece
    const port = Number(/^from (\d+)$/.exec(said)?.[1])
    expect(port).toBeGreaterThanOrEqual(512)
    expect(port).toBeLessThan(1024)
    server.close()
  },
)

test('a closed port is the system’s error', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  await expect(connectPrivileged('127.0.0.1', port, 5_000)).rejects.toMatchObject({
    code: process.getuid?.() === 0 ? 'ECONNREFUSED' : 'EACCES',
  })
})
