/** A terminal as the one channel of an SSH connection: its requests and its limits. */
import { Buffer } from 'node:buffer'
import type { AddressInfo } from 'node:net'
import { createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { dial } from '../../../../proxies/net/dial.ts'
import { LINGER_MS } from '../../../../proxies/net/limits.ts'
import {
  buildChannelOpen,
  buildChannelRequest,
  buildClose,
  buildData,
  buildGlobalRequest,
  buildPtyRequest,
  buildShell,
  buildWindowAdjust,
} from '../../../../proxies/ssh/codec/build.ts'
import { dataOf, MSG, parseChannelRequest, windowAdjustOf } from '../../../../proxies/ssh/codec/messages.ts'
import { Writer } from '../../../../proxies/ssh/codec/writer.ts'
import { TerminalLeg } from '../../../../proxies/ssh/terminal/target-leg.ts'
import { TelnetWire } from '../../../../proxies/telnet/wire.ts'
import { TerminalTarget } from '../../../../proxies/terminal/target.ts'
import { WITHOUT_URGENCY } from '../../../../src/contract/urgent-data.ts'
import { until } from '../../../until.ts'

const NOTHING = new Uint8Array(0)
const ID = 7
const PTY = { terminal: 'xterm', columns: 80, rows: 24, widthPixels: 0, heightPixels: 0, modes: NOTHING }

let server: Server
let device: Socket
let received: Buffer
let leg: TerminalLeg
let messages: Buffer[]

beforeEach(async () => {
  const connection = Promise.withResolvers<Socket>()
  server = createServer({ allowHalfOpen: true }, connection.resolve)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const name = 'sw1'
  const socket = await dial('127.0.0.1', port, { name, signal: new AbortController().signal })
  device = await connection.promise
  received = Buffer.alloc(0)
  device.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
  })
  device.on('error', () => undefined)
  leg = new TerminalLeg(
    new TerminalTarget({
      socket,
      urgent: WITHOUT_URGENCY,
      name,
      protocol: 'Telnet',
      wire: (around) => new TelnetWire(around),
      loginTimeoutMs: 1000,
    }),
  )
  const own: Buffer[] = []
  messages = own
  leg.onMessage = (message) => own.push(message)
})
afterEach(() => {
  leg.destroy()
  device.destroy()
  server.close()
})

const tell = async (...sent: Uint8Array[]): Promise<number[]> => {
  const from = messages.length
  for (const message of sent) leg.send(message)
  // Replies arrive after the caller has returned.
  expect(messages.length).toBe(from)
  await Promise.resolve()
  return messages.slice(from).map((message) => message[0]!)
}
const openChannel = (window: number) =>
  tell(buildChannelOpen({ type: 'session', sender: ID, window, maxPacket: 32_768, typeData: NOTHING }))
const begin = async (window = 1 << 20) => {
  await openChannel(window)
  await tell(buildPtyRequest(0, true, PTY), buildShell(0, true))
}
const shown = () =>
  Buffer.concat(messages.filter((message) => message[0] === MSG.channelData).map(dataOf)).toString('latin1')

test('what is typed is copied: the buffer that it came in is read into again before the target takes it', async () => {
  await begin()
  device.pause()
  const shared = Buffer.alloc(32 * 1024)
  const sent: Buffer[] = []
  // Far more than the system's buffers of a connection hold.
  for (let n = 0; n < 400; n++) {
    shared.fill(97 + (n % 26))
    sent.push(Buffer.from(shared))
    const message = buildData(0, shared)
    leg.send(message)
    message.fill('!')
  }
  const before = received.length
  device.resume()
  const all = Buffer.concat(sent)
  await vi.waitFor(() => expect(received.length - before).toBeGreaterThanOrEqual(all.length), 20_000)
  expect(received.includes('!')).toBe(false)
}, 300_000)

describe('it may be asked', () => {
  test('for one session, and for nothing else', async () => {
    expect(await openChannel(100)).toEqual([MSG.channelOpenConfirmation])
    expect(await openChannel(100)).toEqual([MSG.channelOpenFailure])
    const forward = { type: 'direct-tcpip', sender: 8, window: 1, maxPacket: 32_768, typeData: NOTHING }
    expect(await tell(buildChannelOpen(forward))).toEqual([MSG.channelOpenFailure])
    const question = { name: 'keepalive@openssh.com', wantReply: true, data: NOTHING }
    expect(await tell(buildGlobalRequest(question))).toEqual([MSG.requestFailure])
  })

  test('for a shell on a terminal, once', async () => {
    await openChannel(100)
    expect(await tell(buildShell(0, true))).toEqual([MSG.channelFailure])
    expect(await tell(buildPtyRequest(0, true, PTY), buildShell(0, true))).toEqual([
      MSG.channelSuccess,
      MSG.channelWindowAdjust,
      MSG.channelSuccess,
    ])
    expect(await tell(buildShell(0, true))).toEqual([MSG.channelFailure])
  })

  test.each(['exec', 'subsystem', 'env', 'x11-req', 'auth-agent-req@openssh.com'])(
    'and not for %s',
    async (type) => {
      await openChannel(100)
      const data = new Writer(16).string('any').string('thing').finish()
      expect(await tell(buildChannelRequest(0, type, true, data))).toEqual([MSG.channelFailure])
      expect(received.length).toBe(0)
    },
  )
})

test('nothing may be typed before the session has begun', async () => {
  await openChannel(100)
  const adjusts = () => messages.filter((message) => message[0] === MSG.channelWindowAdjust)
  expect(adjusts()).toEqual([])
  await tell(buildPtyRequest(0, true, PTY), buildShell(0, true))
  expect(windowAdjustOf(adjusts()[0]!)).toBeGreaterThan(0)
})

test('keys, a break and an interrupt become what Telnet has for them', async () => {
  await begin()
  const interrupt = new Writer(8).string('INT').finish()
  await tell(
    buildData(0, Buffer.from('a\r\xff', 'latin1')),
    buildChannelRequest(0, 'break', true, new Writer(4).uint32(0).finish()),
    buildChannelRequest(0, 'signal', false, interrupt),
  )
  const bytes = [0x61, 0x0d, 0, 0xff, 0xff, 0xff, 243, 0xff, 244, 0xff, 242]
  await until('all of it', () => received.length === bytes.length || undefined)
  expect([...received]).toEqual(bytes)
})

test('the latest size is sent on request', async () => {
  await begin()
  const size = new Writer(16).uint32(100_000).uint32(30).uint32(0).uint32(0).finish()
  await tell(buildChannelRequest(0, 'window-change', false, size))
  device.write(Buffer.of(0xff, 253, 31))
  const answer = [0xff, 251, 31, 0xff, 250, 31, 0xff, 0xff, 0xff, 0xff, 0, 30, 0xff, 240]
  await until('the size', () => received.length === answer.length || undefined)
  expect([...received]).toEqual(answer)
})

describe('what it shows', () => {
  test('is as much as the window has, and the end waits behind it', async () => {
    await begin(10)
    device.end('0123456789abcdef')
    await until('the window full', () => shown().length === 10 || undefined)
    expect(messages.some((message) => message[0] === MSG.channelClose)).toBe(false)
    await tell(buildWindowAdjust(0, 4))
    await until('some more', () => shown() === '0123456789abcd' || undefined)
    await tell(buildWindowAdjust(0, 4))
    await until('the end', () => messages.at(-1)?.[0] === MSG.channelClose || undefined)
    expect(shown()).toBe('0123456789abcdef')
    const exit = messages.find((message) => message[0] === MSG.channelRequest)
    expect(parseChannelRequest(exit!).type).toBe('exit-status')
    expect([leg.closed, leg.failure]).toEqual([false, undefined])
  })

  test('is not read while the relay does not accept it', async () => {
    await begin(1000)
    leg.paused = true
    const flood = Buffer.alloc(64 * 1024, 'x')
    const pour = () => {
      while (device.write(flood));
    }
    device.on('drain', pour)
    pour()
    await until('the kernel to be full', () => device.writableNeedDrain || undefined)
    expect(shown().length).toBeLessThanOrEqual(1000)
    leg.paused = false
    await until('a window', () => shown().length === 1000 || undefined)
    expect(leg.closed).toBe(false)
  })
})

describe('the client closes', () => {
  test('and so does the connection', async () => {
    await begin()
    const gone = new Promise((resolve) => device.on('end', resolve))
    expect(leg.isSpent).toBe(false)
    await tell(buildClose(0))
    await gone
    expect(messages.at(-1)?.[0]).toBe(MSG.channelClose)
    expect(leg.isSpent).toBe(true)
  })

  test('and a target that stays is left soon', async () => {
    await begin()
    const reset = new Promise((resolve) => device.on('error', resolve))
    vi.useFakeTimers({ toFake: ['setTimeout'] })
    try {
      await tell(buildClose(0))
      vi.advanceTimersByTime(LINGER_MS)
    } finally {
      vi.useRealTimers()
    }
    // The relay no longer reads the device's output.
    const talk = setInterval(() => device.write('still here'), 20)
    await reset
    clearInterval(talk)
  })
})
