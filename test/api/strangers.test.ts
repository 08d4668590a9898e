/** Clients before and during sign-in: over real TLS connections from addresses of the loopback network. */
import { connect, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConnectionLimits, Connections } from '../../src/api/http/connections.ts'
import { MAX_ANONYMOUS_PER_ADDRESS } from '../../src/api/http/limits.ts'
import { until } from '../until.ts'
import { type Harness, startHarness } from './harness.ts'

let h: Harness
let port: number
let cookie: string
const sockets: (Socket | TLSSocket)[] = []
beforeAll(async () => {
  h = await startHarness()
  await h.api.listen({ host: '0.0.0.0', port: 0 })
  port = (h.api.server.address() as { port: number }).port
  cookie = await h.signIn()
})
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  await h.close()
})

/** Opens a TCP connection that sends nothing; `isOpen` until the server closes it. */
async function silent(localAddress: string): Promise<{ isOpen: () => boolean }> {
  const socket = connect({ host: '127.0.0.1', port, localAddress })
  let isOpen = true
  socket.on('close', () => {
    isOpen = false
  })
  socket.on('error', () => undefined)
  sockets.push(socket)
  await new Promise((resolve) => socket.once('connect', resolve))
  return { isOpen: () => isOpen }
}

/** Sends a request on a TLS connection that stays open; returns the answer's status. */
async function ask(localAddress: string, headers: string, on?: TLSSocket) {
  const socket =
    on ??
    (await new Promise<TLSSocket>((resolve, reject) => {
      const tcp = connect({ host: '127.0.0.1', port, localAddress })
      const made = connectTls({ socket: tcp, host: '127.0.0.1', ca: h.cert }, () => resolve(made))
      made.once('error', reject)
      sockets.push(made)
    }))
  const answer = new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))))
  socket.write(`GET /api/users?limit=1 HTTP/1.1\r\nHost: x\r\n${headers}\r\n`)
  return { socket, status: Number((await answer).split(' ')[1]) }
}

describe('connections without sign-in', () => {
  it('are bounded for each address; those of the others, and those signed in, have their room', async () => {
    const signedIn = await ask('127.0.0.7', `Cookie: ${cookie}\r\n`)
    expect(signedIn.status).toBe(200)
    const many = await Promise.all(
      Array.from({ length: MAX_ANONYMOUS_PER_ADDRESS + 20 }, () => silent('127.0.0.7')),
    )
    const open = () => many.filter((one) => one.isOpen()).length
    await until('those too many closed', () => open() <= MAX_ANONYMOUS_PER_ADDRESS || undefined)
    expect(open()).toBe(MAX_ANONYMOUS_PER_ADDRESS)
    expect((await ask('127.0.0.7', `Cookie: ${cookie}\r\n`, signedIn.socket)).status).toBe(200)
    expect((await ask('127.0.0.8', `Cookie: ${cookie}\r\n`)).status).toBe(200)
    // Another client from that address can still sign in.
    expect((await ask('127.0.0.7', `Cookie: ${cookie}\r\n`)).status).toBe(200)
    expect(open()).toBeLessThanOrEqual(MAX_ANONYMOUS_PER_ADDRESS)
  })

  it('of one network that has its share give way to its newcomers: the oldest, those in work last', () => {
    const { come, gone, busy, connections } = table({ perNetwork: 3 })
    connections.signedIn(come('192.0.2.1', 1), USER)
    come('192.0.2.9', 2)
    for (const port of [3, 4, 5]) come('192.0.2.1', port)
    busy.add('192.0.2.1 3')
    come('192.0.2.1', 6)
    expect(gone).toEqual(['192.0.2.1 4'])
    for (const port of [5, 6]) busy.add(`192.0.2.1 ${port}`)
    come('192.0.2.1', 7)
    busy.add('192.0.2.1 7')
    expect(gone).toEqual(['192.0.2.1 4', '192.0.2.1 3'])
    expect(connections.size).toEqual({ all: 5, anonymous: 4 })
  })

  it('of a proxy, whose clients share its address, are not counted against each other', () => {
    const { come, gone } = table({ perNetwork: 2, anonymous: 4 })
    for (const port of [1, 2, 3, 4]) come(PROXY, port)
    expect(gone).toEqual([])
    // A newcomer has its share.
    come('192.0.2.1', 5)
    expect(gone).toEqual([`${PROXY} 1`])
  })

  it('that balancers say have one address and port are each their own', () => {
    const { come, gone, connections } = table({})
    connections.signedIn(come('192.0.2.1', 1), USER)
    const twin = come('192.0.2.1', 1)
    expect(gone).toEqual([])
    expect(connections.size).toEqual({ all: 2, anonymous: 1 })
    for (const isLast of [false, false, true]) expect(connections.refused(twin)).toBe(isLast)
  })

  it('of all addresses together make room, at the cost of who has most', () => {
    const { come, gone, connections } = table({ perNetwork: 3, anonymous: 4 })
    const [, second] = [1, 2, 3].map((remotePort) => come('192.0.2.1', remotePort))
    come('2001:db8::1', 4)
    come('2001:db8::2', 5)
    expect(gone).toEqual(['192.0.2.1 1'])
    connections.signedIn(second!, USER)
    come('192.0.2.3', 6)
    expect(gone).toEqual(['192.0.2.1 1'])
    // Both belong to one /64 now, and the newcomer has fewer.
    come('192.0.2.4', 7)
    expect(gone).toEqual(['192.0.2.1 1', '2001:db8::1 4'])
    expect(connections.size).toEqual({ all: 5, anonymous: 4 })
  })
})

const PROXY = '192.0.2.99'
const USER = { ids: ['user a'], isAdministrator: false }

/** Makes a table of connections from peers with any addresses. */
function table(limits: Partial<ConnectionLimits>) {
  const server = new (class {
    accept: (socket: Socket) => void = () => undefined
    on(_event: string, listener: (socket: Socket) => void) {
      this.accept = listener
    }
  })()
  const busy = new Set<string>()
  const all = { total: 100, anonymous: 100, perNetwork: 100, perHolder: 100, kept: 0, refusals: 3, ...limits }
  const connections = new Connections(
    all,
    ({ remoteAddress, remotePort }) => busy.has(`${remoteAddress} ${remotePort}`),
    (address) => address === PROXY,
  )
  connections.watch(server as never)
  const gone: string[] = []
  const come = (remoteAddress: string, remotePort: number) => {
    const socket = {
      remoteAddress,
      remotePort,
      once: () => undefined,
      destroy: () => void gone.push(`${remoteAddress} ${remotePort}`),
    } as never
    server.accept(socket)
    return socket
  }
  return { come, gone, busy, connections }
}

describe('connections of those who have signed in', () => {
  const of = (id: string, isAdministrator = false) => ({ ids: [id], isAdministrator })

  it('are so many for each user and key: idle ones give way, others do not', () => {
    const { come, gone, busy, connections } = table({ perHolder: 2 })
    const [one, two, three] = [1, 2, 3].map((port) => come('192.0.2.1', port))
    const both = { ids: ['user a', 'key k'], isAdministrator: false }
    expect(connections.signedIn(one!, both)).toBe(true)
    expect(connections.signedIn(two!, { ...both, ids: ['user b', 'key k'] })).toBe(true)
    busy.add('192.0.2.1 1').add('192.0.2.1 2')
    expect(connections.signedIn(three!, of('key k'))).toBe(false)
    expect(gone).toEqual([])
    busy.delete('192.0.2.1 2')
    expect(connections.signedIn(three!, of('key k'))).toBe(true)
    expect(gone).toEqual(['192.0.2.1 2'])
  })

  it('leave room for those who administrate', () => {
    const { come, busy, connections } = table({ total: 4, kept: 2 })
    const peers = [1, 2, 3, 4].map((port) => come('192.0.2.1', port))
    for (const port of [1, 2, 3, 4]) busy.add(`192.0.2.1 ${port}`)
    expect(connections.signedIn(peers[0]!, of('user a'))).toBe(true)
    expect(connections.signedIn(peers[1]!, of('user b'))).toBe(true)
    expect(connections.signedIn(peers[2]!, of('user c'))).toBe(false)
    expect(connections.signedIn(peers[2]!, of('user root', true))).toBe(true)
    expect(connections.signedIn(peers[3]!, of('user root', true))).toBe(true)
    // The same connection may become another user's later.
    expect(connections.signedIn(peers[3]!, of('user a'))).toBe(false)
  })

  it('make room for newcomers when all is full: the idle ones of whoever holds most', () => {
    const { come, gone, busy, connections } = table({ total: 4 })
    for (const [port, id] of [
      [1, 'user a'],
      [2, 'user b'],
      [3, 'user b'],
      [4, 'user root'],
    ] as const)
      connections.signedIn(come('192.0.2.1', port), of(id, id === 'user root'))
    busy.add('192.0.2.1 2')
    const fifth = come('192.0.2.1', 5)
    expect(gone).toEqual(['192.0.2.1 3'])
    connections.signedIn(fifth, of('user c'))
    for (const port of [1, 5]) busy.add(`192.0.2.1 ${port}`)
    come('192.0.2.1', 6)
    expect(gone).toEqual(['192.0.2.1 3', '192.0.2.1 6'])
    expect(connections.size).toEqual({ all: 4, anonymous: 0 })
  })

  it('end with so many refusals, counted anew after a sign-in', () => {
    const { come, connections } = table({})
    const peer = come('192.0.2.1', 1)
    expect([1, 2].map(() => connections.refused(peer))).toEqual([false, false])
    connections.signedIn(peer, USER)
    expect([1, 2, 3].map(() => connections.refused(peer))).toEqual([false, false, true])
  })
})

describe('refused API keys', () => {
  it('hold no good key up', async () => {
    const body = { key_name: 'good', profile: 'auditor' }
    const { api_key: key } = (await h.call('POST', '/apikeys', { cookie, body })).body
    const tries = Array.from({ length: 50 }, (_, n) =>
      h.call('GET', '/users', { headers: { 'x-auth-key': `wrong-${n}` } }),
    )
    expect(new Set((await Promise.all(tries)).map(({ status }) => status))).toEqual(new Set([401]))
    expect((await h.call('GET', '/users', { headers: { 'x-auth-key': key } })).status).toBe(200)
  })
})
