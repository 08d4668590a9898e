/** Input of a client that is held by order of the broker. */
import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import {
  buildChannelRequest,
  buildClose,
  buildData,
  buildEof,
  buildExec,
  buildGlobalRequest,
  buildPtyRequest,
  buildShell,
  buildSubsystem,
  buildWindowAdjust,
} from '../../../../proxies/ssh/codec/build.ts'
import { buildAddress, buildConnection } from '../../../../proxies/ssh/codec/forwarding.ts'
import { dataOf, MSG, parseChannelRequest } from '../../../../proxies/ssh/codec/messages.ts'
import type { Right } from '../../../../src/model/rights.ts'
import { confirmation, newWorld, open, type World } from '../relay-world.ts'

const SIZE = { columns: 80, rows: 24, widthPixels: 0, heightPixels: 0 }
const WHY = 'the change is being checked'

async function withShell(rights: Right[] = ['SSH_SHELL']): Promise<{ world: World; channel: number }> {
  const world = newWorld(rights)
  const channel = world.openSession()
  world.client.say(
    buildPtyRequest(channel, false, { ...SIZE, terminal: 'xterm', modes: new Uint8Array(0) }),
    buildShell(channel, false),
  )
  await world.settle()
  world.target.sent.length = 0
  return { world, channel }
}

async function withStream(message: (channel: number) => Buffer, rights: Right[]) {
  const world = newWorld(rights)
  const channel = world.openSession()
  world.client.say(message(channel))
  await world.settle()
  world.target.sent.length = 0
  return { world, channel }
}

const typed = (messages: Buffer[]) =>
  messages.map((message) => Buffer.from(dataOf(message)).toString()).join('')
const shown = (world: World) =>
  world.client
    .take(MSG.channelExtendedData)
    .map((message) => message.subarray(13).toString())
    .join('')

test('keys typed while input is suspended are discarded; output goes on, and both changes are shown', async () => {
  const { world, channel } = await withShell()
  const { client, target, suspension } = world
  suspension.begin(WHY)
  expect(shown(world)).toMatch(WHY)
  client.say(buildData(channel, 'rm -rf /\r'), buildData(channel, '\x03'), buildWindowAdjust(channel, 5))
  target.say(buildData(channel, 'output'))
  expect(typed(client.take(MSG.channelData))).toBe('output')
  expect(target.take(MSG.channelData)).toEqual([])
  suspension.end()
  expect(shown(world)).toMatch('accepted again')
  client.say(buildData(channel, 'id\r'))
  expect(typed(target.take(MSG.channelData))).toBe('id\r')
  expect(world.ended).toBeUndefined()
})

test('the window of a terminal whose keys are discarded does not run out', async () => {
  const { world, channel } = await withShell()
  world.suspension.begin(WHY)
  for (let round = 0; round < 40; round++) world.client.say(buildData(channel, Buffer.alloc(16_384, 0x61)))
  expect(world.ended).toBeUndefined()
  world.suspension.end()
  expect(world.target.take(MSG.channelData)).toEqual([])
})

test('keys that waited when input was suspended are discarded too', async () => {
  const { world, channel } = await withShell()
  // More than the target accepts, so that the rest waits.
  for (let round = 0; round < 4; round++) world.client.say(buildData(channel, Buffer.alloc(30_000, 0x61)))
  const sent = typed(world.target.take(MSG.channelData)).length
  expect(sent).toBeLessThanOrEqual(100_000)
  world.suspension.begin(WHY)
  world.suspension.end()
  world.target.say(buildWindowAdjust(channel, 100_000))
  expect(world.target.take(MSG.channelData)).toEqual([])
})

test('a signal is refused, and the size of the window is sent at the end', async () => {
  const { world, channel } = await withShell()
  const { client, target, suspension } = world
  suspension.begin(WHY)
  const size = (columns: number) => {
    const data = Buffer.alloc(16)
    data.writeUInt32BE(columns, 0)
    data.writeUInt32BE(30, 4)
    return data
  }
  client.say(
    buildChannelRequest(channel, 'signal', true, Buffer.from('\0\0\0\x03INT')),
    buildChannelRequest(channel, 'window-change', false, size(90)),
    buildChannelRequest(channel, 'window-change', false, size(100)),
  )
  expect(client.take(MSG.channelFailure)).toHaveLength(1)
  expect(target.sent).toEqual([])
  suspension.end()
  const sent = target.take(MSG.channelRequest).map((message) => parseChannelRequest(message))
  expect(sent.map(({ type, data }) => [type, Buffer.from(data).readUInt32BE(0)])).toEqual([
    ['window-change', 100],
  ])
})

test.each([
  [
    'a command without a terminal',
    (channel: number) => buildExec(channel, false, 'cat'),
    ['SSH_REMOTE_COMMAND'],
  ],
  ['SFTP', (channel: number) => buildSubsystem(channel, false, 'sftp'), ['SFTP_SESSION']],
] as [string, (channel: number) => Buffer, Right[]][])(
  'data of %s waits, with the stream’s end behind it, and no byte is lost',
  async (_, message, rights) => {
    const { world, channel } = await withStream(message, rights)
    const { client, target, suspension } = world
    suspension.begin(WHY)
    const init = Buffer.from('\0\0\0\x05\x01\0\0\0\x03')
    client.say(buildData(channel, init), buildData(channel, init), buildEof(channel))
    expect(target.sent).toEqual([])
    suspension.end()
    expect(typed(target.take(MSG.channelData))).toBe(init.toString() + init.toString())
    expect(target.take(MSG.channelEof)).toHaveLength(1)
  },
)

test('a filter sends none of its own requests either', async () => {
  const { world, channel } = await withStream((id) => buildSubsystem(id, false, 'sftp'), ['SSH_SCP_UP'])
  const { client, target, suspension } = world
  suspension.begin(WHY)
  client.say(buildData(channel, '\0\0\0\x05\x01\0\0\0\x03'))
  target.say(buildWindowAdjust(channel, 5))
  expect(target.sent).toEqual([])
  suspension.end()
  expect(target.take(MSG.channelData)).toHaveLength(1)
})

test('a client with much data that waits is not read, and is again after that', async () => {
  const world = newWorld(['SSH_REMOTE_COMMAND'])
  const { client, target, suspension, flow } = world
  const channels: number[] = []
  for (let count = 0; count < 8; count++) {
    const channel = world.openSession()
    channels.push(channel)
    client.say(buildExec(channel, false, 'cat'))
    await world.settle()
    target.say(buildWindowAdjust(channel, 2_000_000))
  }
  suspension.begin(WHY)
  for (const channel of channels) {
    for (let sent = 0; sent < 1_500_000; sent += 30_000) client.say(buildData(channel, Buffer.alloc(30_000)))
  }
  expect(flow.client.paused).toBe(true)
  expect(world.ended).toBeUndefined()
  suspension.end()
  expect(flow.client.paused).toBe(false)
})

test('no connection is opened through the target, and no listener on it', async () => {
  const rights: Right[] = ['SSH_SHELL', 'SSH_DIRECT_TCPIP', 'SSH_REVERSE_TCPIP']
  const { world } = await withShell(rights)
  const { client, target, suspension } = world
  const listen = buildGlobalRequest({
    name: 'tcpip-forward',
    wantReply: true,
    data: buildAddress({ host: 'localhost', port: 8080 }),
  })
  const to = { to: { host: '10.0.0.9', port: 22 }, from: { host: '127.0.0.1', port: 5 } }
  // This one is asked of the audit log when input is suspended.
  client.say(open('direct-tcpip', 6, buildConnection(to)), listen)
  suspension.begin(WHY)
  client.say(open('direct-tcpip', 7, buildConnection(to)), listen)
  await world.settle()
  expect(target.sent).toEqual([])
  expect(client.take(MSG.channelOpenFailure)).toHaveLength(2)
  expect(client.take(MSG.requestFailure)).toHaveLength(2)
  expect(world.denied.map(({ reason }) => reason)).toEqual(Array(2).fill(`input is suspended: ${WHY}`))
})

test('data of a forwarded connection waits', async () => {
  const world = newWorld(['SSH_DIRECT_TCPIP'])
  const to = { to: { host: '10.0.0.9', port: 22 }, from: { host: '127.0.0.1', port: 5 } }
  world.client.say(open('direct-tcpip', 6, buildConnection(to)))
  await world.settle()
  const [asked] = world.target.take(MSG.channelOpen)
  expect(asked).toBeDefined()
  const id = asked!.readUInt32BE(5 + asked!.readUInt32BE(1))
  world.target.say(confirmation(id, 1006))
  world.suspension.begin(WHY)
  world.client.say(buildData(id, 'GET / HTTP/1.0'))
  expect(world.target.take(MSG.channelData)).toEqual([])
  world.suspension.end()
  expect(typed(world.target.take(MSG.channelData))).toBe('GET / HTTP/1.0')
})

test('a program that is asked for while input is suspended begins afterwards', async () => {
  const world = newWorld(['SSH_REMOTE_COMMAND'])
  const channel = world.openSession()
  world.suspension.begin(WHY)
  world.client.say(buildExec(channel, true, 'id'))
  await world.settle()
  expect(world.opened).toEqual([])
  expect(shown(world)).toMatch(WHY)
  world.suspension.end()
  await world.settle()
  expect(world.opened).toEqual(['SSH_REMOTE_COMMAND'])
  expect(world.target.take(MSG.channelRequest)).toHaveLength(1)
})

test('a suspended client can leave', async () => {
  const { world, channel } = await withStream((id) => buildExec(id, false, 'cat'), ['SSH_REMOTE_COMMAND'])
  world.suspension.begin(WHY)
  world.client.say(buildData(channel, 'x'), buildClose(channel))
  await world.settle()
  expect(world.target.take(MSG.channelData)).toEqual([])
  expect(world.target.take(MSG.channelClose)).toHaveLength(1)
})
