/**
 * Packets in pieces, from many peers in turn, cut at every position: no byte is lost or gets into another
 * connection.
 */
import { randomBytes } from 'node:crypto'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Bastion, startBastion } from '../e2e/bastion.ts'
import { ssh } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { PEERS } from './setting.ts'

const BYTES = 60_000
const CIPHERS = [
  'aes128-gcm@openssh.com',
  'aes256-gcm@openssh.com',
  'chacha20-poly1305@openssh.com',
  'aes128-ctr',
]

describeWithPeers('pieces', PEERS, () => {
  let bastion: Bastion
  let front: Server
  let back: Server
  let knife: Knife
  const sockets = new Set<Socket>()

  /** Decides where to cut the next bytes: how many are sent now, and how long the rest waits. */
  type Knife = (length: number) => { bytes: number; milliseconds: number }

  const upTo = (most: number): number => 1 + Math.floor(Math.random() * most)
  /** Anywhere, repeatedly. */
  const toPieces: Knife = (length) => ({ bytes: Math.min(length, upTo(100)), milliseconds: 0 })
  /** Shortly before the end, at a packet's tag: its sender wrote packet by packet. */
  const beforeTheEnd: Knife = (length) =>
    length > 30 ? { bytes: length - upTo(24), milliseconds: 2 } : { bytes: length, milliseconds: 0 }

  function cut(from: Socket, to: Socket, knife: Knife): void {
    const queue: Buffer[] = []
    let busy = false
    const next = (): void => {
      const piece = queue.shift()
      busy = piece !== undefined
      if (!piece || to.destroyed) return
      const { bytes, milliseconds } = knife(piece.length)
      if (bytes < piece.length) queue.unshift(piece.subarray(bytes))
      to.write(piece.subarray(0, bytes))
      if (milliseconds === 0) setImmediate(next)
      else setTimeout(next, milliseconds)
    }
    from.on('data', (data: Buffer) => {
      queue.push(data)
      if (!busy) next()
    })
  }

  /** Starts a proxy to a local port that cuts everything, both ways. */
  async function cutter(port: number): Promise<Server> {
    const server = createServer({ noDelay: true }, (one) => {
      const other = connect({ port, host: '127.0.0.1', noDelay: true })
      for (const [from, to] of [
        [one, other],
        [other, one],
      ] as const) {
        sockets.add(from)
        from.on('error', () => to.destroy())
        from.on('close', () => setTimeout(() => to.destroy(), 500))
        cut(from, to, (length) => knife(length))
      }
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return server
  }
  const portOf = (server: Server): number => (server.address() as AddressInfo).port

  beforeAll(async () => {
    bastion = await startBastion()
    front = await cutter(bastion.broker.ports.ssh)
    back = await cutter(bastion.sshd.port)
    await bastion.broker.must('PUT', '/devices/srv1/services/ssh', { port: portOf(back) })
  })
  afterAll(async () => {
    for (const socket of sockets) socket.destroy()
    front.close()
    back.close()
    await bastion.stop()
  })

  test.each([
    ['to pieces', toPieces],
    ['before its end', beforeTheEnd],
  ])(
    'eight people with four ciphers at a time, through a network that cuts everything %s',
    async (_, cutting) => {
      knife = cutting
      const results = await Promise.all(
        [...CIPHERS, ...CIPHERS].map(async (cipher) => {
          const input = randomBytes(BYTES)
          const login = bastion.login({
            port: portOf(front),
            options: [`Ciphers=${cipher}`, 'ConnectTimeout=30'],
          })
          const { code, bytes, stderr } = await ssh(bastion.home, login, ['cat'], { input, timeout: 300_000 })
          return { cipher, code, stderr, same: bytes.equals(input) }
        }),
      )
      for (const result of results)
        expect(result).toEqual({ cipher: result.cipher, code: 0, stderr: '', same: true })
    },
    90_000,
  )
})
