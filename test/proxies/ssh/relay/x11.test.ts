import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  buildChannelFailure,
  buildChannelRequest,
  buildChannelSuccess,
  buildClose,
  buildData,
  buildExec,
} from '../../../../proxies/ssh/codec/build.ts'
import { buildAddress, buildX11Request, parseX11Request } from '../../../../proxies/ssh/codec/forwarding.ts'
import { dataOf, MSG, parseChannelOpen, parseChannelRequest } from '../../../../proxies/ssh/codec/messages.ts'
import { exchangeCookie, x11Grant } from '../../../../proxies/ssh/relay/x11.ts'
import { confirmation, newWorld, open, type World } from '../relay-world.ts'

const NAME = 'MIT-MAGIC-COOKIE-1'
const REAL = '00112233445566778899aabbccddeeff'
const REST = Buffer.from('what the program says next')

/** The first message of an X11 client (X Window System Protocol, appendix B). */
function setup(cookie: Buffer, order: 'B' | 'l' = 'l', name = NAME): Buffer {
  const header = Buffer.alloc(12)
  header.write(order)
  const write = (value: number, at: number) =>
    order === 'B' ? header.writeUInt16BE(value, at) : header.writeUInt16LE(value, at)
  write(11, 2)
  write(name.length, 6)
  write(cookie.length, 8)
  const pad = (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)])
  return Buffer.concat([header, pad(Buffer.from(name)), pad(cookie)])
}

const asked = { singleConnection: false, protocol: NAME, cookie: REAL, screen: 0 }
const grantOf = (fake: string, singleConnection = false) =>
  x11Grant({ ...asked, singleConnection }, () => Buffer.from(fake, 'hex'))!
const FAKE = 'f'.repeat(32)

describe('a cookie', () => {
  test('that cannot be exchanged is no grant', () => {
    const random = () => Buffer.alloc(16)
    for (const cookie of ['', '00', 'x'.repeat(32), `${REAL}0`, 'ab'.repeat(65), `${REAL}\0`])
      expect(x11Grant({ ...asked, cookie }, random)).toBeUndefined()
    for (const protocol of ['', 'XDM-AUTHORIZATION-1', 'mit-magic-cookie-1', `${NAME}\0`])
      expect(x11Grant({ ...asked, protocol }, random)).toBeUndefined()
  })

  test.each(['B', 'l'] as const)('is exchanged in the byte order %s', (order) => {
    const message = setup(Buffer.from(FAKE, 'hex'), order)
    expect(exchangeCookie(message, [grantOf(FAKE)])).toBe('done')
    expect(message).toEqual(setup(Buffer.from(REAL, 'hex'), order))
  })

  test('of one of several requests is exchanged for that one', () => {
    const other = { ...grantOf('e'.repeat(32)), real: Buffer.from('1'.repeat(32), 'hex') }
    const message = setup(Buffer.from('e'.repeat(32), 'hex'))
    expect(exchangeCookie(message, [grantOf(FAKE), other])).toBe('done')
    expect(message.includes(Buffer.from('1'.repeat(32), 'hex'))).toBe(true)
  })

  test('holds once where one connection was asked for', () => {
    const once = [grantOf(FAKE, true)]
    expect(exchangeCookie(setup(Buffer.from(FAKE, 'hex')), once)).toBe('done')
    expect(exchangeCookie(setup(Buffer.from(FAKE, 'hex')), once)).toBe('wrong')
  })

  test('that is another is wrong, whatever surrounds it', () => {
    const grants = [grantOf(FAKE)]
    const fake = Buffer.from(FAKE, 'hex')
    for (const message of [
      setup(Buffer.from(REAL, 'hex')),
      setup(Buffer.alloc(0)),
      setup(fake.subarray(1)),
      setup(Buffer.concat([fake, fake])),
      setup(fake, 'l', 'MIT-MAGIC-COOKIE-2'),
      setup(fake, 'l', ''),
      setup(fake, 'X' as 'B'),
      setup(fake, 'l', 'x'.repeat(600)),
    ]) {
      expect(exchangeCookie(message, grants)).toBe('wrong')
      expect(message.includes(Buffer.from(REAL, 'hex'))).toBe(message.equals(setup(Buffer.from(REAL, 'hex'))))
    }
    expect(exchangeCookie(setup(fake), [])).toBe('wrong')
  })

  test('is waited for, and arbitrary bytes never get the real one', () => {
    const message = setup(Buffer.from(FAKE, 'hex'))
    for (let length = 0; length < message.length; length++)
      expect(exchangeCookie(message.subarray(0, length), [grantOf(FAKE)])).toBe('more')
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 700 }), (bytes) => {
        const copy = Uint8Array.from(bytes)
        expect(exchangeCookie(copy, [grantOf(FAKE)])).not.toBe('done')
        expect(copy).toEqual(bytes)
      }),
    )
  })
})

describe('a connection from the target', () => {
  let world: World
  let id: number
  let fake: Buffer
  beforeEach(() => start())
  afterEach(() => world.end())

  async function start(singleConnection = false): Promise<void> {
    world = newWorld(['SSH_X11', 'SSH_REMOTE_COMMAND'])
    id = world.openSession()
    const request = buildX11Request({ ...asked, singleConnection, screen: 7 })
    world.client.say(buildChannelRequest(id, 'x11-req', true, request))
    const { data } = parseChannelRequest(world.target.take(MSG.channelRequest)[0]!)
    const sent = parseX11Request(data)
    expect(sent).toEqual({ ...asked, singleConnection, screen: 7, cookie: sent.cookie })
    fake = Buffer.from(sent.cookie, 'hex')
    world.target.say(buildChannelSuccess(id))
    world.client.say(buildExec(id, false, 'xterm'))
    await world.settle()
  }

  /** Opens a channel by the target, and confirms it by the client. Returns undefined if it is refused. */
  async function connect(own: number): Promise<number | undefined> {
    world.target.say(open('x11', own, buildAddress({ host: '127.0.0.1', port: 1 })))
    await world.settle()
    const [offered] = world.client.take(MSG.channelOpen)
    if (!offered) return undefined
    const { sender } = parseChannelOpen(offered)
    world.client.say(confirmation(sender, own))
    return sender
  }

  const received = () => Buffer.concat(world.client.take(MSG.channelData).map((one) => dataOf(one)))

  test('shows the cookie that the target got, which is not the real one, and the display gets that', async () => {
    expect(fake.toString('hex')).not.toBe(REAL)
    const channel = (await connect(50))!
    world.target.say(buildData(channel, Buffer.concat([setup(fake), REST])))
    expect(received()).toEqual(Buffer.concat([setup(Buffer.from(REAL, 'hex')), REST]))
    world.target.say(buildData(channel, setup(fake)))
    expect(received()).toEqual(setup(fake))
  })

  test('may show it in pieces of any size', async () => {
    const whole = Buffer.concat([setup(fake, 'B'), REST])
    for (const size of [1, 5, 12, 47, 48, 63]) {
      const channel = (await connect(100 + size))!
      for (let at = 0; at < whole.length; at += size)
        world.target.say(buildData(channel, whole.subarray(at, at + size)))
      expect(received()).toEqual(Buffer.concat([setup(Buffer.from(REAL, 'hex'), 'B'), REST]))
    }
  })

  test('without it is cut, and the display hears nothing', async () => {
    const channel = (await connect(50))!
    world.target.say(buildData(channel, setup(Buffer.from(REAL, 'hex'))))
    expect(received()).toHaveLength(0)
    expect(world.client.take(MSG.channelClose)).toHaveLength(1)
    expect(world.target.take(MSG.channelClose)).toHaveLength(1)
    expect(world.denied).toMatchObject([{ what: 'SSH_X11' }])
    world.target.say(buildData(channel, setup(fake)))
    expect(received()).toHaveLength(0)
    expect(world.ended).toBeUndefined()
  })

  test('may come once, where one was asked for', async () => {
    world.end()
    await start(true)
    const first = (await connect(50))!
    const second = (await connect(51))!
    world.target.say(buildData(first, setup(fake)))
    expect(received()).toEqual(setup(Buffer.from(REAL, 'hex')))
    world.target.say(buildData(second, setup(fake)))
    expect(received()).toHaveLength(0)
    expect(await connect(52)).toBeUndefined()
  })

  test('comes too late when the channel that asked is closed', async () => {
    const open = (await connect(50))!
    world.target.say(buildClose(id))
    expect(await connect(51)).toBeUndefined()
    world.target.say(buildData(open, setup(fake)))
    expect(received()).toHaveLength(0)
  })

  test('comes for nothing when the target had refused the request', async () => {
    world.end()
    world = newWorld(['SSH_X11', 'SSH_REMOTE_COMMAND'])
    id = world.openSession()
    world.client.say(buildChannelRequest(id, 'x11-req', true, buildX11Request(asked)))
    world.target.say(buildChannelFailure(id))
    world.client.say(buildExec(id, false, 'xterm'))
    await world.settle()
    expect(await connect(50)).toBeUndefined()
  })
})
