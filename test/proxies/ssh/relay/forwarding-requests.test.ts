/** The client's global requests, with targets that reply late, wrongly or never. */
import { Buffer } from 'node:buffer'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { MAX_BINDS } from '../../../../proxies/ssh/channel/limits.ts'
import {
  buildGlobalRequest,
  buildRequestFailure,
  buildRequestSuccess,
} from '../../../../proxies/ssh/codec/build.ts'
import {
  buildAddress,
  buildConnection,
  buildPort,
  buildSocketPath,
  parsePort,
} from '../../../../proxies/ssh/codec/forwarding.ts'
import { MSG, parseChannelOpen, parseGlobalRequest } from '../../../../proxies/ssh/codec/messages.ts'
import { KEEPALIVE_INTERVAL_MS } from '../../../../proxies/ssh/transport/limits.ts'
import { newWorld, open, type World } from '../relay-world.ts'

let world: World

beforeEach(() => {
  world = newWorld(['SSH_REVERSE_TCPIP', 'SSH_REVERSE_UNIXSOCK'])
})
afterEach(() => world.end())

const request = (name: string, host: string, port: number, wantReply = true) =>
  buildGlobalRequest({ name, wantReply, data: buildAddress({ host, port }) })
const bind = (port: number, wantReply = true) => request('tcpip-forward', 'localhost', port, wantReply)
const keepalive = buildGlobalRequest({
  name: 'keepalive@openssh.com',
  wantReply: true,
  data: new Uint8Array(0),
})
const accepted = (host: string, port: number) =>
  open('forwarded-tcpip', 9, buildConnection({ to: { host, port }, from: { host: '192.0.2.1', port: 1 } }))
const answers = () => world.client.sent.map(([type]) => type)
const asked = () =>
  world.target.sent.filter(([type]) => type === MSG.globalRequest).map((one) => parseGlobalRequest(one).name)
const offered = () => world.client.take(MSG.channelOpen).map((one) => parseChannelOpen(one).type)

describe('answers come in the order of the requests', () => {
  test('also those that the bastion gives by itself', async () => {
    const { client, target, settle } = world
    client.say(keepalive, bind(1), keepalive, request('unknown', 'x', 1), bind(2), keepalive)
    await settle()
    expect(answers()).toEqual([MSG.requestFailure])
    target.say(buildRequestSuccess())
    await settle()
    expect(answers()).toEqual([82, 81, 82, 82])
    target.say(buildRequestFailure())
    await settle()
    expect(answers()).toEqual([82, 81, 82, 82, 82, 82])
  })

  test('one at a time goes to the target, and always asks for an answer', async () => {
    const { client, target, settle } = world
    client.say(bind(1, false), bind(2, false))
    await settle()
    expect(asked()).toEqual(['tcpip-forward'])
    expect(parseGlobalRequest(target.sent[0]!).wantReply).toBe(true)
    target.say(buildRequestSuccess())
    await settle()
    expect(asked()).toEqual(['tcpip-forward', 'tcpip-forward'])
    expect(answers()).toEqual([])
  })

  test("and a sign of life that the bastion asks of the target is none of the client's", async () => {
    world.end()
    vi.useFakeTimers({ toFake: ['setInterval'] })
    world = newWorld(['SSH_REVERSE_TCPIP'])
    const { client, target, settle } = world
    target.isSilent = true
    vi.advanceTimersByTime(KEEPALIVE_INTERVAL_MS)
    vi.useRealTimers()
    client.say(bind(1))
    await settle()
    expect(asked()).toEqual(['keepalive@openssh.com', 'tcpip-forward'])
    target.say(buildRequestFailure())
    expect(answers()).toEqual([])
    target.say(buildRequestSuccess())
    expect(answers()).toEqual([MSG.requestSuccess])
  })

  test('a cancellation behind its bind finds it', async () => {
    const { client, target, settle } = world
    client.say(bind(1), request('cancel-tcpip-forward', 'localhost', 1))
    await settle()
    target.say(buildRequestSuccess())
    expect(asked()).toEqual(['tcpip-forward', 'cancel-tcpip-forward'])
    target.say(accepted('localhost', 1))
    await settle()
    expect(offered()).toEqual(['forwarded-tcpip'])
    target.say(buildRequestSuccess())
    target.say(accepted('localhost', 1))
    await settle()
    expect(offered()).toEqual([])
    expect(answers()).toEqual([81, 81])
  })
})

describe('a connection is accepted for', () => {
  test('what was granted, by the same address and port', async () => {
    const { client, target, settle, denied } = world
    client.say(bind(8080))
    await settle()
    target.say(accepted('localhost', 8080))
    target.say(buildRequestSuccess())
    for (const [host, port] of [
      ['localhost', 8081],
      ['127.0.0.1', 8080],
      ['', 8080],
      ['localhost', 0],
    ] as const)
      target.say(accepted(host, port))
    await settle()
    expect(offered()).toEqual([])
    expect(denied.map(({ what, destination }) => [what, destination])[0]).toEqual([
      'channel forwarded-tcpip from the target',
      'localhost:8080',
    ])
    expect(denied).toHaveLength(5)
    target.say(accepted('localhost', 8080))
    await settle()
    expect(offered()).toEqual(['forwarded-tcpip'])
  })

  test('the port that the target chose, and the client is told it', async () => {
    const { client, target, settle } = world
    client.say(bind(0))
    await settle()
    target.say(buildRequestSuccess(buildPort(40_001)))
    expect(parsePort(client.sent[0]!.subarray(1))).toBe(40_001)
    target.say(accepted('localhost', 0), accepted('localhost', 40_001))
    await settle()
    expect(offered()).toEqual(['forwarded-tcpip'])
  })

  test('nothing that was refused', async () => {
    const { client, target, settle } = world
    client.say(bind(8080))
    await settle()
    target.say(buildRequestFailure(), accepted('localhost', 8080))
    await settle()
    expect(offered()).toEqual([])
  })
})

describe('the target', () => {
  test('that grants any port and names none breaks the protocol', async () => {
    world.client.say(bind(0))
    await world.settle()
    world.target.say(buildRequestSuccess())
    expect(world.ended).toMatch(/the target broke the SSH protocol/)
  })

  test('that replies without a request, or twice, changes nothing', async () => {
    world.target.say(buildRequestSuccess(), buildRequestFailure())
    world.client.say(bind(1))
    await world.settle()
    world.target.say(buildRequestFailure(), buildRequestSuccess())
    expect(answers()).toEqual([82])
    world.target.say(accepted('localhost', 1))
    await world.settle()
    expect(offered()).toEqual([])
  })
})

describe('a bind is refused and never asked for', () => {
  test.each([
    ['a port over 65535', 'localhost', 65_536],
    ['a port of 2^32 - 1', 'localhost', 0xffffffff],
    ['a NUL in the address', 'localhost\0', 80],
    ['a blank in the address', 'local host', 80],
    ['an address of 30,000 bytes', 'x'.repeat(30_000), 80],
    ['an address that is no loopback', '0.0.0.0', 80],
    ['all addresses', '', 80],
  ])('with %s', async (_, host, port) => {
    world.client.say(request('tcpip-forward', host, port))
    await world.settle()
    expect(answers()).toEqual([82])
    expect(asked()).toEqual([])
    expect(world.denied).toMatchObject([{ what: 'SSH_REVERSE_TCPIP' }])
    expect(world.ended).toBeUndefined()
  })

  test.each([
    ['an empty path', ''],
    ['a NUL', '/tmp/x\0'],
    ['a path of 30,000 bytes', `/${'x'.repeat(30_000)}`],
  ])('a socket with %s', async (_, path) => {
    const data = buildSocketPath(path)
    world.client.say(buildGlobalRequest({ name: 'streamlocal-forward@openssh.com', wantReply: true, data }))
    await world.settle()
    expect(answers()).toEqual([82])
    expect(asked()).toEqual([])
  })

  test('when there are too many', async () => {
    const { client, target, settle } = world
    for (let port = 1; port <= MAX_BINDS + 1; port++) {
      client.say(bind(port))
      await settle()
      target.say(buildRequestSuccess())
    }
    expect(asked()).toHaveLength(MAX_BINDS)
    expect(answers().at(-1)).toBe(82)
    client.say(request('cancel-tcpip-forward', 'localhost', 1))
    target.say(buildRequestSuccess())
    client.say(bind(9_999))
    await settle()
    expect(asked()).toHaveLength(MAX_BINDS + 2)
  })

  test('data that is cut short ends the session', () => {
    world.client.say(
      buildGlobalRequest({ name: 'tcpip-forward', wantReply: true, data: Buffer.from([0, 0]) }),
    )
    expect(world.ended).toMatch(/the client broke the SSH protocol/)
  })
})

test('a client that asks without end while the target is silent ends its session', () => {
  world.client.say(bind(1))
  for (let n = 0; n < 5_000; n++) world.client.say(keepalive)
  expect(world.ended).toMatch(/too many requests/)
})
