/** A client's terminal as an SSH client with one session: its requests, its limits, its end. */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  buildChannelFailure,
  buildChannelOpenConfirmation,
  buildChannelOpenFailure,
  buildChannelSuccess,
  buildClose,
  buildData,
  buildEof,
  buildExtendedData,
  buildGlobalRequest,
  buildWindowAdjust,
} from '../../../../proxies/ssh/codec/build.ts'
import {
  dataOf,
  MSG,
  OPEN_FAILURE,
  parseChannelOpen,
  parseChannelRequest,
  windowAdjustOf,
} from '../../../../proxies/ssh/codec/messages.ts'
import { parsePtyRequest, parseWindowChange } from '../../../../proxies/ssh/codec/requests.ts'
import { MAX_TYPED, TerminalClientLeg } from '../../../../proxies/ssh/terminal/client-leg.ts'
import type { TerminalClient } from '../../../../proxies/terminal/client.ts'
import type { TerminalSize } from '../../../../proxies/terminal/wire.ts'

const ID = 9
const SIZE = { columns: 80, rows: 24, widthPixels: 0, heightPixels: 0 }

/** The parts of a client that a leg uses, without a socket. */
class FakeClient {
  onTyped: TerminalClient['onTyped']
  onResize: TerminalClient['onResize']
  onBreak: TerminalClient['onBreak']
  onDrain: TerminalClient['onDrain']
  onClosed: TerminalClient['onClosed']
  terminal = { type: 'xterm', ...SIZE }
  paused = true
  congested = false
  written = 0
  waiting = 0
  flooded = false
  closed = false
  shown = Buffer.alloc(0)

  show(output: string | Uint8Array): void {
    this.shown = Buffer.concat([this.shown, Buffer.from(output as Uint8Array)])
  }
  close(): void {
    this.closed = true
  }
  destroy(): void {
    this.closed = true
    this.onClosed?.()
  }
  resize(size: Partial<TerminalSize>): void {
    this.terminal = { ...this.terminal, ...size }
    const { type: _, ...all } = this.terminal
    this.onResize?.(all)
  }
}

let client: FakeClient
let leg: TerminalClientLeg
let messages: Buffer[]
let calls: number

function start(ahead = ''): void {
  client = new FakeClient()
  leg = new TerminalClientLeg(client as unknown as TerminalClient, Buffer.from(ahead))
  const own: Buffer[] = []
  messages = own
  calls = 0
  leg.onMessage = (message) => {
    expect(leg.paused, 'a message while it is paused').toBe(false)
    expect(calls, 'a message from within a call').toBe(0)
    own.push(message)
  }
  leg.begin()
}
beforeEach(() => start())

const settle = () => new Promise((resolve) => setImmediate(resolve))
async function tell(...sent: Uint8Array[]): Promise<Buffer[]> {
  const from = messages.length
  for (const message of sent) {
    calls++
    leg.send(message)
    calls--
  }
  await settle()
  return messages.slice(from)
}
const kinds = (all: readonly Buffer[]) =>
  all.map((message) =>
    message[0] === MSG.channelRequest ? parseChannelRequest(message).type : Number(message[0]),
  )
const confirmation = (window: number, maxPacket = 1024) =>
  buildChannelOpenConfirmation({ recipient: 0, sender: ID, window, maxPacket })
const typed = () => Buffer.concat(messages.filter((message) => message[0] === MSG.channelData).map(dataOf))
const sizes = () =>
  messages
    .filter((message) => message[0] === MSG.channelRequest)
    .map(parseChannelRequest)
    .filter(({ type }) => type === 'window-change')
    .map(({ data }) => parseWindowChange(data))
const shell = (window = 1 << 20) => tell(confirmation(window), buildChannelSuccess(0))

describe('it asks', () => {
  test('for one session, a terminal as the client has it, and a shell', async () => {
    client.terminal = { type: 'vt220', ...SIZE, columns: 132 }
    const asked = await tell(confirmation(100))
    expect(parseChannelOpen(messages[0]!)).toMatchObject({ type: 'session', sender: 0 })
    expect(kinds(asked)).toEqual(['pty-req', 'shell'])
    const pty = parseChannelRequest(asked[0]!)
    expect(parsePtyRequest(pty.data)).toMatchObject({ terminal: 'vt220', columns: 132, rows: 24 })
    expect(pty.wantReply).toBe(false)
    expect(parseChannelRequest(asked[1]!).wantReply).toBe(true)
  })

  test('for the size of the window when it has changed, and for the last one after the shell is there', async () => {
    client.resize({ columns: 90 })
    await tell(confirmation(100))
    client.resize({ columns: 100 })
    client.resize({ rows: 50 })
    await settle()
    expect(sizes()).toEqual([])
    await tell(buildChannelSuccess(0))
    expect(sizes()).toMatchObject([{ columns: 100, rows: 50 }])
    client.resize({ columns: 101 })
    client.resize({ columns: 101 })
    await settle()
    expect(sizes()).toMatchObject([{ columns: 100, rows: 50 }, { columns: 101 }])
  })

  test('for no size again where none has changed', async () => {
    await shell()
    expect(sizes()).toEqual([])
  })

  test('for a break, once there is a shell', async () => {
    client.onBreak?.()
    await shell()
    client.onBreak?.()
    await settle()
    expect(kinds(messages).filter((kind) => kind === 'break')).toHaveLength(1)
  })

  test('nothing at a global request, and refuses it', async () => {
    const question = { name: 'keepalive@openssh.com', wantReply: true, data: new Uint8Array(0) }
    expect(kinds(await tell(buildGlobalRequest(question)))).toEqual([MSG.requestFailure])
    expect(await tell(buildGlobalRequest({ ...question, wantReply: false }))).toEqual([])
  })
})

describe('what is typed', () => {
  test('waits for the shell and for room, ahead of it what was typed before', async () => {
    start('before ')
    const more = 'and after '.repeat(60)
    client.onTyped?.(Buffer.from(more))
    await tell(confirmation(600, 256))
    expect(typed().length).toBe(0)
    const sent = await tell(buildChannelSuccess(0))
    expect(sent.map((message) => dataOf(message).length)).toEqual([256, 256, 88])
    await tell(buildWindowAdjust(0, 100))
    expect(typed().toString()).toBe(`before ${more}`)
  })

  test('leaves the client read up to a limit, so that its end is noticed', async () => {
    await tell(confirmation(0), buildChannelSuccess(0))
    expect(client.paused).toBe(false)
    client.onTyped?.(Buffer.alloc(MAX_TYPED, 'x'))
    expect(client.paused).toBe(false)
    client.onTyped?.(Buffer.from('y'))
    expect(client.paused).toBe(true)
    await tell(buildWindowAdjust(0, 1))
    expect(client.paused).toBe(false)
  })

  test('is not read while the bastion does not want it', async () => {
    await shell()
    leg.paused = true
    client.onTyped?.(Buffer.from('x'))
    await settle()
    expect([client.paused, typed().length]).toEqual([true, 0])
    leg.paused = false
    await settle()
    expect([client.paused, typed().toString()]).toEqual([false, 'x'])
  })
})

describe('output', () => {
  test('of both kinds is shown, and makes room for as much', async () => {
    await shell()
    const big = Buffer.alloc(100 * 1024, 'o')
    expect(await tell(buildData(0, big))).toEqual([])
    const granted = await tell(buildExtendedData(0, big))
    expect(granted.map(windowAdjustOf)).toEqual([2 * big.length])
    expect(client.shown.length).toBe(2 * big.length)
  })

  test('makes none while the client does not read', async () => {
    await shell()
    client.congested = true
    const big = Buffer.alloc(200 * 1024, 'o')
    expect(await tell(buildData(0, big))).toEqual([])
    client.congested = false
    client.onDrain?.()
    await settle()
    expect(windowAdjustOf(messages.at(-1)!)).toBe(big.length)
  })
})

describe('it ends', () => {
  test('with the channel, and says nothing after that', async () => {
    await shell()
    expect(kinds(await tell(buildEof(0), buildClose(0), buildClose(0)))).toEqual([MSG.channelClose])
    expect(client.closed).toBe(true)
    client.onTyped?.(Buffer.from('x'))
    client.onBreak?.()
    client.resize({ columns: 1 })
    client.onDrain?.()
    expect(await tell(buildData(0, 'late'))).toEqual([])
    expect(client.shown.length).toBe(0)
  })

  test('where no session is opened: the person reads why', async () => {
    const { connectFailed } = OPEN_FAILURE
    await tell(buildChannelOpenFailure(0, connectFailed, 'sallyport: srv1 does not answer'))
    expect(client.shown.toString()).toBe('sallyport: srv1 does not answer\r\n')
    expect(client.closed).toBe(true)
  })

  test('where there is no shell', async () => {
    expect(kinds(await tell(confirmation(100), buildChannelFailure(0)))).toEqual([
      'pty-req',
      'shell',
      MSG.channelClose,
    ])
    expect(client.shown.toString()).toBe('sallyport: the target refused a shell\r\n')
    expect(client.closed).toBe(true)
  })

  test('with the client: what was to be said is dropped', async () => {
    await shell()
    let ends = 0
    leg.onClosed = () => ends++
    client.onTyped?.(Buffer.from('x'))
    client.destroy()
    await settle()
    expect([ends, typed().length, leg.closed]).toEqual([1, 0, true])
  })
})

const bytes = (most: number) => fc.uint8Array({ minLength: 1, maxLength: most })
const step = fc.oneof(
  fc.record({ kind: fc.constant('type' as const), bytes: bytes(300) }),
  fc.record({ kind: fc.constant('output' as const), bytes: bytes(70_000), isError: fc.boolean() }),
  fc.record({ kind: fc.constant('room' as const), bytes: fc.nat(500) }),
  fc.record({ kind: fc.constant('size' as const), columns: fc.nat(3), rows: fc.nat(3) }),
  fc.record({ kind: fc.constant('pause' as const), paused: fc.boolean() }),
  fc.record({ kind: fc.constant('congest' as const), congested: fc.boolean() }),
  fc.record({ kind: fc.constant('break' as const) }),
  fc.record({ kind: fc.constant('turn' as const) }),
)

test('whatever comes in whatever order: all that is typed arrives, in its order and never more than there is room for', async () => {
  const opening = fc.record({ window: fc.nat(300), maxPacket: fc.integer({ min: 256, max: 2000 }) })
  const run = async ({ window, maxPacket }: { window: number; maxPacket: number }, steps: Step[]) => {
    start('ahead')
    let room = window
    let expected = Buffer.from('ahead')
    let shown = 0
    const [before, after] = [steps.slice(0, steps.length / 2), steps.slice(steps.length / 2)]
    const take = async (one: Step) => {
      switch (one.kind) {
        case 'type':
          expected = Buffer.concat([expected, one.bytes])
          client.onTyped?.(one.bytes)
          return
        case 'output':
          shown += one.bytes.length
          await tell(one.isError ? buildExtendedData(0, one.bytes) : buildData(0, one.bytes))
          return
        case 'room':
          room += one.bytes
          await tell(buildWindowAdjust(0, one.bytes))
          return
        case 'size':
          client.resize({ columns: one.columns, rows: one.rows })
          return
        case 'pause':
          leg.paused = one.paused
          return
        case 'congest':
          client.congested = one.congested
          if (!one.congested) client.onDrain?.()
          return
        case 'break':
          client.onBreak?.()
          return
        case 'turn':
          await settle()
      }
    }
    await tell(confirmation(window, maxPacket))
    for (const one of before) await take(one)
    await tell(buildChannelSuccess(0))
    for (const one of after) {
      await take(one)
      expect(typed().length).toBeLessThanOrEqual(room)
    }
    leg.paused = false
    client.congested = false
    client.onDrain?.()
    await tell(buildWindowAdjust(0, expected.length))
    expect(typed()).toEqual(expected)
    for (const message of messages) {
      if (message[0] === MSG.channelData) expect(dataOf(message).length).toBeLessThanOrEqual(maxPacket)
    }
    const granted = messages
      .filter((message) => message[0] === MSG.channelWindowAdjust)
      .reduce((sum, message) => sum + windowAdjustOf(message), 0)
    expect(client.shown.length).toBe(shown)
    expect(shown - granted).toBeGreaterThanOrEqual(0)
    // The bytes not granted back are fewer than those that would stop the target.
    expect(shown - granted).toBeLessThan(128 * 1024)
    const { type: _, ...size } = client.terminal
    expect(sizes().at(-1) ?? SIZE).toEqual(size)
    expect(client.paused).toBe(false)
  }
  type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
  await fc.assert(fc.asyncProperty(opening, fc.array(step, { maxLength: 30 }), run), { numRuns: 300 })
})
