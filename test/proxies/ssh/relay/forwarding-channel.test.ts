/** Forwarded channels with peers that break the rules. */
import { Buffer } from 'node:buffer'
import { afterEach, describe, expect, test } from 'vitest'
import {
  MAX_FORWARDED_CHANNELS,
  MAX_SESSION_CHANNELS,
  MAX_WINDOW,
} from '../../../../proxies/ssh/channel/limits.ts'
import {
  buildChannelOpenFailure,
  buildChannelRequest,
  buildChannelSuccess,
  buildClose,
  buildData,
  buildEof,
  buildExec,
  buildExtendedData,
  buildGlobalRequest,
  buildRequestSuccess,
  buildWindowAdjust,
} from '../../../../proxies/ssh/codec/build.ts'
import { buildAddress, buildConnection } from '../../../../proxies/ssh/codec/forwarding.ts'
import {
  dataOf,
  MSG,
  parseChannelOpen,
  parseChannelOpenConfirmation,
  parseChannelOpenFailure,
  recipientOf,
  windowAdjustOf,
} from '../../../../proxies/ssh/codec/messages.ts'
import { confirmation, newWorld, open, WINDOW, type World } from '../relay-world.ts'

const CLIENT = 5
const TARGET = 50
const FROM = { host: '127.0.0.1', port: 1 }
const to = (host: string, port: number) => buildConnection({ to: { host, port }, from: FROM })

let world: World
afterEach(() => world.end())

/** Opens a channel to db1:5432 with this window on both sides. */
async function direct(window = WINDOW): Promise<number> {
  world = newWorld(['SSH_DIRECT_TCPIP'])
  world.client.say(open('direct-tcpip', CLIENT, to('db1', 5432), window))
  await world.settle()
  const { sender } = parseChannelOpen(world.target.take(MSG.channelOpen)[0]!)
  world.target.say(confirmation(sender, TARGET, window))
  return sender
}

/** Opens a channel of a listener on the target. */
async function reverse(): Promise<number> {
  world = newWorld(['SSH_REVERSE_TCPIP'])
  const bound = { host: 'localhost', port: 80 }
  world.client.say(buildGlobalRequest({ name: 'tcpip-forward', wantReply: true, data: buildAddress(bound) }))
  await world.settle()
  world.target.say(buildRequestSuccess())
  world.target.say(open('forwarded-tcpip', TARGET, to('localhost', 80)))
  await world.settle()
  const { sender } = parseChannelOpen(world.client.take(MSG.channelOpen)[0]!)
  world.client.say(confirmation(sender, CLIENT))
  return sender
}

const text = (sent: Buffer[]) => Buffer.concat(sent.map((one) => dataOf(one))).toString()

describe.each([
  ['a direct channel', direct],
  ['a reverse channel', reverse],
])('%s', (_, opened) => {
  test('is told to the audit log before it passes, and passes both ways', async () => {
    const id = await opened()
    const { client, target, counted } = world
    expect(world.opened.at(-1)).toMatch(/ (db1:5432|localhost:80)$/)
    client.say(buildData(id, 'up'), buildEof(id))
    target.say(buildData(id, 'down'), buildEof(id))
    expect(target.take(MSG.channelData).map(recipientOf)).toEqual([TARGET])
    expect(text(client.take(MSG.channelData))).toBe('down')
    expect(counted).toEqual({ in: 2, out: 4 })
    expect([client.take(MSG.channelEof).length, target.take(MSG.channelEof).length]).toEqual([1, 1])
  })

  test('goes on one way when the other has ended', async () => {
    const id = await opened()
    world.client.say(buildEof(id))
    world.target.say(buildData(id, 'still'))
    expect(text(world.client.take(MSG.channelData))).toBe('still')
    world.target.say(buildEof(id), buildClose(id))
    expect(world.client.take(MSG.channelClose).map(recipientOf)).toEqual([CLIENT])
    world.client.say(buildClose(id))
    // The number is free again, and messages to it are ignored.
    world.client.say(buildData(id, 'x'))
    expect(world.target.take(MSG.channelData)).toEqual([])
    expect(world.ended).toBeUndefined()
  })

  test('is closed once to either side, whoever begins', async () => {
    for (const [first, second] of [
      ['client', 'target'],
      ['target', 'client'],
    ] as const) {
      const id = await opened()
      world[first].say(buildClose(id))
      world[second].say(buildClose(id))
      expect([world.client.take(MSG.channelClose), world.target.take(MSG.channelClose)]).toMatchObject([
        { length: 1 },
        { length: 1 },
      ])
      world.end()
    }
    await opened()
  })

  test('takes no more than its window, from either side', async () => {
    for (const side of ['client', 'target'] as const) {
      const id = await opened()
      for (let n = 0; n < 5; n++) world[side].say(buildData(id, Buffer.alloc(30_000)))
      expect(world.ended).toMatch(new RegExp(`the ${side} broke the SSH protocol: more data than the window`))
      world.end()
    }
    await opened()
  })

  test('has no error output', async () => {
    for (const side of ['client', 'target'] as const) {
      const id = await opened()
      world[side].say(buildExtendedData(id, 'x'))
      expect(world.ended).toMatch(new RegExp(`the ${side} broke the SSH protocol: extended data`))
      world.end()
    }
    await opened()
  })

  test('has no requests: neither side is asked, each is refused', async () => {
    const id = await opened()
    for (const side of ['client', 'target'] as const) {
      const other = side === 'client' ? 'target' : 'client'
      world[side].say(buildExec(id, true, 'id'), buildChannelRequest(id, 'exit-status', false))
      expect(world[side].take(MSG.channelFailure)).toHaveLength(1)
      expect(world[other].take(MSG.channelRequest)).toEqual([])
    }
    world.target.say(buildChannelSuccess(id))
    expect(world.ended).toMatch(/an answer to no request/)
  })
})

test('windows are granted as the other side takes, and never over the limit', async () => {
  const id = await direct(2 ** 30)
  const { client, target } = world
  expect(parseChannelOpenConfirmation(client.take(MSG.channelOpenConfirmation)[0]!).window).toBe(MAX_WINDOW)
  const piece = buildData(id, Buffer.alloc(32_768))
  for (let sent = 0; sent < MAX_WINDOW; sent += 32_768) target.say(piece)
  const granted = target.take(MSG.channelWindowAdjust).map(windowAdjustOf)
  expect(granted.reduce((sum, bytes) => sum + bytes, 0)).toBe(MAX_WINDOW)
})

describe('is not opened', () => {
  test.each([
    ['to a port over 65535', to('db1', 65_536)],
    ['to a port of 2^32 - 1', to('db1', 0xffffffff)],
    ['to the port 0', to('db1', 0)],
    ['to nowhere', to('', 80)],
    ['to a name with a NUL', to('db1\0.example.com', 80)],
    ['to a name with a line end', to('db1\r\nHELO', 80)],
    ['to a name of 30,000 bytes', to('x'.repeat(30_000), 80)],
    [
      'from a name of 30,000 bytes',
      buildConnection({ to: { host: 'db1', port: 80 }, from: { host: 'x'.repeat(30_000), port: 1 } }),
    ],
  ])('%s', async (_, data) => {
    world = newWorld(['SSH_DIRECT_TCPIP'])
    world.client.say(open('direct-tcpip', CLIENT, data))
    await world.settle()
    expect(world.target.sent).toEqual([])
    expect(
      world.client.take(MSG.channelOpenFailure).map((one) => parseChannelOpenFailure(one).recipient),
    ).toEqual([CLIENT])
    expect(world.denied).toMatchObject([{ what: 'SSH_DIRECT_TCPIP' }])
    expect(world.ended).toBeUndefined()
  })

  test('over the number of channels; those of programs have a number of their own', async () => {
    world = newWorld(['SSH_DIRECT_TCPIP', 'SSH_SHELL'])
    for (let n = 0; n < MAX_FORWARDED_CHANNELS + 8; n++)
      world.client.say(open('direct-tcpip', n, to('db1', 80)))
    await world.settle()
    expect(world.target.take(MSG.channelOpen)).toHaveLength(MAX_FORWARDED_CHANNELS)
    expect(world.client.take(MSG.channelOpenFailure)).toHaveLength(8)
    for (let n = 0; n < MAX_SESSION_CHANNELS + 3; n++) world.client.say(open('session', 1000 + n))
    expect(world.target.take(MSG.channelOpen)).toHaveLength(MAX_SESSION_CHANNELS)
    expect(world.client.take(MSG.channelOpenFailure)).toHaveLength(3)
  })

  test('by a message before it is open: a queue of such would be memory', async () => {
    world = newWorld(['SSH_DIRECT_TCPIP'])
    world.client.say(open('direct-tcpip', CLIENT, to('db1', 80)))
    await world.settle()
    world.client.say(buildChannelRequest(0, 'x', false, Buffer.alloc(1000)))
    expect(world.ended).toMatch(/the client broke the SSH protocol: a message before the confirmation/)
  })

  test('when its data are cut short: that ends the session', () => {
    world = newWorld(['SSH_DIRECT_TCPIP'])
    world.client.say(open('direct-tcpip', CLIENT, to('db1', 80).subarray(0, -1)))
    expect(world.ended).toMatch(/the client broke the SSH protocol/)
  })

  test('toward the target before the audit log has it', async () => {
    world = newWorld(['SSH_DIRECT_TCPIP'])
    world.client.say(open('direct-tcpip', CLIENT, to('db1', 80)))
    expect(world.target.sent).toEqual([])
    world.target.say(confirmation(0, TARGET))
    expect(world.ended).toMatch(/the target broke the SSH protocol/)
  })
})

test('a client that confirms its own channel breaks the protocol', async () => {
  world = newWorld(['SSH_DIRECT_TCPIP'])
  world.client.say(open('direct-tcpip', CLIENT, to('db1', 80)))
  await world.settle()
  world.client.say(confirmation(0, CLIENT))
  expect(world.ended).toMatch(/the client broke the SSH protocol: an answer to a channel that nobody opened/)
})

test('what the other side refuses is refused, with its words', async () => {
  world = newWorld(['SSH_DIRECT_TCPIP'])
  world.client.say(open('direct-tcpip', CLIENT, to('db1', 80)))
  await world.settle()
  world.target.say(buildChannelOpenFailure(0, 2, 'Connection refused'))
  const failure = parseChannelOpenFailure(world.client.take(MSG.channelOpenFailure)[0]!)
  expect([failure.recipient, failure.reason, Buffer.from(failure.description).toString()]).toEqual([
    CLIENT,
    2,
    'Connection refused',
  ])
})

test('after no-more-sessions connections are still forwarded (PROTOCOL 2.2)', async () => {
  world = newWorld(['SSH_DIRECT_TCPIP'])
  const data = new Uint8Array(0)
  world.client.say(buildGlobalRequest({ name: 'no-more-sessions@openssh.com', wantReply: true, data }))
  world.client.say(open('session', 1), open('direct-tcpip', CLIENT, to('db1', 80)))
  await world.settle()
  expect(world.client.take(MSG.channelOpenFailure).map(recipientOf)).toEqual([1])
  expect(world.target.take(MSG.channelOpen)).toHaveLength(1)
})

test('window that comes while the client has not confirmed is granted with its confirmation', async () => {
  const id = await reverse()
  world.target.say(buildWindowAdjust(id, 50_000))
  expect(world.client.take(MSG.channelWindowAdjust).map(windowAdjustOf)).toEqual([50_000])
})
