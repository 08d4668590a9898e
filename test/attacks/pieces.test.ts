/**
 * Packets that come in pieces, from many peers by turns, at every point of a packet: nobody's bytes get lost or get
 * into anybody else's connection.
 */
import { randomBytes } from 'node:crypto'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Bastion, startBastion } from '../e2e/bastion.ts'
import { ssh } from '../peers/openssh.ts'

const BYTES = 60_000
const CIPHERS = [
  'aes128-gcm@openssh.com',
  'aes256-gcm@openssh.com',
  'chacha20-poly1305@openssh.com',
  'aes128-ctr',
]

let bastion: Bastion
let front: Server
let back: Server
const sockets = new Set<Socket>()

/** Passes on what comes in pieces of one to `most` bytes, each in a turn of the event loop of its own. */
function cut(from: Socket, to: Socket, most: number): void {
  const queue: Buffer[] = []
  let busy = false
  const next = (): void => {
    const piece = queue.shift()
    busy = piece !== undefined
    if (!piece || to.destroyed) return
    const length = 1 + Math.floor(Math.random() * most)
    if (length < piece.length) queue.unshift(piece.subarray(length))
    to.write(piece.subarray(0, length))
    setImmediate(next)
  }
  from.on('data', (data: Buffer) => {
    queue.push(data)
    if (!busy) next()
  })
}

/** A way to a port of this machine on which everything comes in pieces, both ways. */
async function cutter(port: number, most: number): Promise<Server> {
  const server = createServer({ noDelay: true }, (one) => {
    const other = connect({ port, host: '127.0.0.1', noDelay: true })
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      sockets.add(from)
      from.on('error', () => to.destroy())
      from.on('close', () => setTimeout(() => to.destroy(), 500))
      cut(from, to, most)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}
const portOf = (server: Server): number => (server.address() as AddressInfo).port

beforeAll(async () => {
  bastion = await startBastion()
  front = await cutter(bastion.broker.ports.ssh, 60)
  back = await cutter(bastion.sshd.port, 200)
  await bastion.broker.must('PUT', '/devices/srv1/services/ssh', { port: portOf(back) })
})
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  front.close()
  back.close()
  await bastion.stop()
})

test('eight people with four ciphers at a time, through a network that cuts everything to pieces', async () => {
  const results = await Promise.all(
    [...CIPHERS, ...CIPHERS].map(async (cipher) => {
      const input = randomBytes(BYTES)
      const login = bastion.login({
        port: portOf(front),
        options: [`Ciphers=${cipher}`, 'ConnectTimeout=30'],
      })
      const { code, bytes, stderr } = await ssh(bastion.home, login, ['cat'], { input, timeout: 60_000 })
      return { cipher, code, stderr, same: bytes.equals(input) }
    }),
  )
  for (const result of results)
    expect(result).toEqual({ cipher: result.cipher, code: 0, stderr: '', same: true })
}, 90_000)
