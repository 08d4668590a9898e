/**
 * Connections that never sign in: others can sign in meanwhile, and these are closed when their time has
 * expired.
 */
import type { Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Arrivals } from '../../proxies/net/arrivals.ts'
import type { Bound } from '../../src/sockets/accept.ts'
import { type Bastion, startBastion } from '../e2e/bastion.ts'
import { ssh } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { listening } from '../proxies/listening.ts'
import { until } from '../until.ts'
import { clearPacket, connectRaw, connectSocket, connectToSignIn } from './raw.ts'
import { PEERS } from './setting.ts'

const GRACE_MS = 3_000
const sockets: Socket[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})

interface Watched {
  socket: Socket
  closed: boolean
}

async function arrive(port: number, from: string): Promise<Watched> {
  const socket = await connectSocket({ port, from })
  return watch(socket)
}

function watch(socket: Socket): Watched {
  sockets.push(socket)
  const watched = { socket, closed: false }
  socket.resume()
  socket.on('end', () => {
    watched.closed = true
  })
  socket.on('close', () => {
    watched.closed = true
  })
  return watched
}

const closedOf = (all: readonly Watched[]): number => all.filter(({ closed }) => closed).length

describe('the door', () => {
  let door: Arrivals
  let bound: Bound
  let welcomed: Socket[]
  async function open(options: { maxHalfOpen?: number; maxHalfOpenPerAddress?: number }): Promise<number> {
    welcomed = []
    door = new Arrivals({ graceMs: 60_000, onSocket: (socket) => welcomed.push(socket), ...options })
    bound = await listening(door)
    return bound.port
  }
  afterEach(() => {
    bound.close()
    door.close()
    door.destroy()
  })

  test('one address has a limit of its own, others are let in', async () => {
    const port = await open({ maxHalfOpenPerAddress: 3 })
    const many: Watched[] = []
    for (let n = 0; n < 5; n++) many.push(await arrive(port, '127.0.0.2'))
    await until('two refusals', () => closedOf(many) === 2 || undefined)
    const other = await arrive(port, '127.0.0.3')
    await until('four sockets', () => welcomed.length === 4 || undefined)
    expect([closedOf(many), other.closed]).toEqual([2, false])
  })

  test('who has signed in, or has gone, makes room', async () => {
    const port = await open({ maxHalfOpenPerAddress: 1 })
    const first = await arrive(port, '127.0.0.2')
    await until('the first', () => welcomed.length === 1 || undefined)
    door.signedIn(welcomed[0]!)
    const second = await arrive(port, '127.0.0.2')
    await until('the second', () => welcomed.length === 2 || undefined)
    second.socket.destroy()
    await until('its end', () => welcomed[1]!.destroyed || undefined)
    await arrive(port, '127.0.0.2')
    await until('the third', () => welcomed.length === 3 || undefined)
    expect(first.closed).toBe(false)
  })

  test('when all places are taken, the address with most gives one up', async () => {
    const port = await open({ maxHalfOpen: 4 })
    const many: Watched[] = []
    for (let n = 0; n < 4; n++) many.push(await arrive(port, '127.0.0.2'))
    await until('four sockets', () => welcomed.length === 4 || undefined)
    const other = await arrive(port, '127.0.0.3')
    await until('the other', () => welcomed.length === 5 || undefined)
    await until('one less', () => closedOf(many) === 1 || undefined)
    expect([many[0]!.closed, other.closed]).toEqual([true, false])
    const more = await arrive(port, '127.0.0.2')
    await until('no place for more of the same', () => more.closed || closedOf(many) === 2 || undefined)
    expect(other.closed).toBe(false)
  })
})

describeWithPeers('a broker', PEERS, () => {
  let bastion: Bastion
  let port: number
  beforeAll(async () => {
    bastion = await startBastion({ broker: { config: { login_grace: `${GRACE_MS / 1000}s` } } })
    port = bastion.broker.ports.ssh
  })
  afterAll(() => bastion.stop())

  const stuck: [string, (socket: Socket) => void][] = [
    ['that send nothing', () => undefined],
    ['that send half a greeting', (socket) => socket.write('SSH-2.0-sta')],
    ['that send a greeting and no keys', (socket) => socket.write('SSH-2.0-stalled\r\n')],
    [
      'that stop in the middle of the key exchange',
      (socket) =>
        socket.write(
          Buffer.concat([Buffer.from('SSH-2.0-stalled\r\n'), clearPacket(Buffer.from([20])).subarray(0, 9)]),
        ),
    ],
  ]

  test.each(stuck)('100 connections %s: others get in, and those are cut in time', async (_, begin) => {
    const session = ssh(bastion.home, bastion.login(), [`sleep ${(2 * GRACE_MS) / 1000}; echo done`])
    const started = Date.now()
    const all: Watched[] = []
    for (let n = 0; n < 100; n++) {
      const one = await arrive(port, '127.0.0.2')
      begin(one.socket)
      all.push(one)
    }
    const { code } = await ssh(bastion.home, bastion.login(), ['true'])
    // The machine may be slow: the question is whether others can sign in during these connections.
    const stillOpen = 100 - closedOf(all)
    const tookMs = Date.now() - started
    expect(code).toBe(0)
    if (tookMs < GRACE_MS) expect(stillOpen).toBe(100)
    await until('their end', () => closedOf(all) === 100 || undefined)
    // A signed-in client is not disconnected.
    expect((await session).stdout).toBe('done\n')
  })

  test('300 of them, from three places and in every state', async () => {
    const all: Watched[] = []
    for (let n = 0; n < 300; n++) {
      const one = await arrive(port, `127.0.0.${2 + (n % 3)}`)
      stuck[n % stuck.length]![1](one.socket)
      all.push(one)
    }
    expect((await ssh(bastion.home, bastion.login(), ['true'])).code).toBe(0)
    await until('their end', () => closedOf(all) === 300 || undefined)
  })

  test('a sign-in that is never finished is cut too', async () => {
    const keys = await connectRaw({ port, from: '127.0.0.5' })
    const service = await connectToSignIn({ port, from: '127.0.0.5' })
    sockets.push(keys.socket, service.socket)
    const began = Date.now()
    await keys.untilClosed()
    await service.untilClosed()
    expect(Date.now() - began).toBeGreaterThan(GRACE_MS / 3)
  })

  test('one address gets a limited number of places, others are not concerned', async () => {
    const all = await Promise.all(Array.from({ length: 270 }, () => arrive(port, '127.0.0.6')))
    await until('refusals', () => closedOf(all) > 0 || undefined)
    expect((await ssh(bastion.home, bastion.login(), ['true'])).code).toBe(0)
    await until('their end', () => closedOf(all) === 270 || undefined)
    // Afterwards that address can sign in again.
    const login = bastion.login({ options: ['BindAddress=127.0.0.6'] })
    expect((await ssh(bastion.home, login, ['true'])).code).toBe(0)
  })
})
