/** SSH clients that wait for an approval, or type the reason of their session, at a gate that asks. */
import { Buffer } from 'node:buffer'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Connections } from '../../../proxies/session/connections.ts'
import {
  buildChannelOpen,
  buildChannelRequest,
  buildClose,
  buildData,
  buildExec,
  buildGlobalRequest,
  buildPtyRequest,
  buildShell,
} from '../../../proxies/ssh/codec/build.ts'
import { MSG, parseChannelOpenConfirmation } from '../../../proxies/ssh/codec/messages.ts'
import { SshConnection } from '../../../proxies/ssh/connection.ts'
import { LOBBY_IDLE_MS } from '../../../proxies/ssh/lobby/limits.ts'
import type { ClientLeg } from '../../../proxies/ssh/transport/leg.ts'
import type { Gate, GateNotice, OpenAnswer, OpenRequest } from '../../../src/contract/gate.ts'

const NOTHING = Buffer.alloc(0)
const PTY = { terminal: 'xterm', columns: 80, rows: 24, widthPixels: 0, heightPixels: 0, modes: NOTHING }
const TARGET = 'root@local:srv1:ssh'
const MINUTE = 60_000

beforeEach(() => {
  vi.useFakeTimers({ now: 0, toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] })
})
afterEach(() => {
  vi.clearAllTimers()
  vi.useRealTimers()
})

function newClient(answers: (OpenAnswer | ((request: OpenRequest) => OpenAnswer))[], hasTarget = true) {
  const sent: Buffer[] = []
  const opened: OpenRequest[] = []
  const denied: string[] = []
  const withdrawn: string[] = []
  const left: string[] = []
  let notify: (notice: GateNotice) => void = () => undefined
  const gate = {
    open: async (request) => {
      opened.push(request)
      const answer = answers.shift() ?? { result: 'denied', message: 'the test has no more answers' }
      return typeof answer === 'function' ? answer(request) : answer
    },
    targets: async () => ({ targets: [{ target: TARGET, description: '' }], total: 1 }),
    denied: async ({ what }) => void denied.push(what),
    withdraw: async ({ approval }) => void withdrawn.push(approval),
    leave: async ({ identity }) => void left.push(identity),
    onNotice: (listener) => {
      notify = listener
    },
  } satisfies Partial<Gate> as unknown as Gate
  let closed = false
  const client = {
    send: (payload: Uint8Array) => void (closed || sent.push(Buffer.from(payload))),
    takeHeard: () => true,
    refreshKeys: () => undefined,
    close: () => {
      closed = true
    },
    destroy: () => {
      closed = true
    },
    breach: () => {
      closed = true
    },
    get closed() {
      return closed
    },
    flooded: false,
    paused: false,
  } as unknown as ClientLeg
  const connections = new Connections(gate)
  const identity = { token: 'token', user: 'ops1', displayName: 'Ops', hasTarget }
  const source = { address: '127.0.0.1', port: 1 }
  const connection = new SshConnection({
    gate,
    connections,
    identity,
    source,
    protocol: 'SSH',
    client,
    ident: 'Sallyport',
    backs: {} as never,
    motd: undefined,
    onClosed: () => undefined,
  })
  connections.add(connection, 'token')
  const settle = () => new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)))
  const say = async (...messages: Uint8Array[]) => {
    for (const message of messages) client.onMessage?.(Buffer.from(message))
    await settle()
  }
  const idOf = (sender: number) => {
    const confirmations = sent.filter(([type]) => type === MSG.channelOpenConfirmation)
    const found = confirmations.map((one) => parseChannelOpenConfirmation(one))
    return found.find(({ recipient }) => recipient === sender)
  }
  return {
    opened,
    denied,
    withdrawn,
    left,
    connections,
    settle,
    say,
    isClosed: () => closed,
    /** Removes and returns the messages of one number. */
    take: (type: number) => {
      const found = sent.filter(([first]) => first === type)
      for (const one of found) sent.splice(sent.indexOf(one), 1)
      return found
    },
    shown: () => Buffer.concat(sent.splice(0)).toString('latin1'),
    types: () => sent.map(([type]) => type),
    /** Opens a session channel and returns the bastion's number of it. */
    session: async (sender = 7) => {
      await say(
        buildChannelOpen({ type: 'session', sender, window: 1e6, maxPacket: 32_768, typeData: NOTHING }),
      )
      return idOf(sender)?.sender ?? -1
    },
    windowOf: (sender = 7) => idOf(sender)?.window,
    notify: async (notice: GateNotice) => {
      notify(notice)
      await settle()
    },
    approval: async (state: 'pending' | 'accepted' | 'rejected' | 'expired', text: string = state) => {
      notify({ type: 'approval', identity: 'token', approval: 'A1', state, text })
      await settle()
    },
    leave: async () => {
      closed = true
      client.onClosed?.()
      await settle()
    },
  }
}

const PENDING: OpenAnswer = {
  result: 'approval_pending',
  wait: {
    approval: 'A1',
    target: TARGET,
    lines: ['1 of bosses has to agree', 'until 12:00'],
    expires: 30 * MINUTE,
  },
}
const DENIED: OpenAnswer = { result: 'denied', message: 'denied by the test' }
const reasonNeeded = (comment: 'optional' | 'mandatory', flaw?: string): OpenAnswer => ({
  result: 'reason_needed',
  question: { target: TARGET, comment, ticket: 'none', ...(flaw !== undefined && { flaw }) },
})

describe('an approval is waited for', () => {
  test('in the terminal, with news, and the target is opened with it at once', async () => {
    const client = newClient([PENDING, DENIED])
    const id = await client.session()
    expect(id).toBeGreaterThanOrEqual(0)
    await client.say(buildPtyRequest(id, true, PTY), buildShell(id, true))
    expect(client.shown()).toMatch(/1 of bosses has to agree[\s\S]*until 12:00[\s\S]*Ctrl-C withdraws/)
    await client.approval('pending', 'boss2 agrees \u001b[2J')
    expect(client.shown()).toContain('sallyport: boss2 agrees ?[2J\r\n')
    await client.approval('accepted', 'granted')
    expect(client.opened.map(({ approval }) => approval)).toEqual([undefined, 'A1'])
    const end = client.shown()
    expect(end).toMatch(/granted[\s\S]*denied by the test/)
  })

  test('on standard error by a command, which gets no window for its input meanwhile', async () => {
    const client = newClient([PENDING, DENIED])
    const id = await client.session()
    expect(client.windowOf()).toBe(0)
    await client.say(buildExec(id, true, Buffer.from('cat')))
    expect(client.take(MSG.channelSuccess)).toHaveLength(1)
    expect(client.take(MSG.channelWindowAdjust)).toHaveLength(0)
    expect(client.take(MSG.channelData)).toHaveLength(0)
    expect(Buffer.concat(client.take(MSG.channelExtendedData)).toString()).toContain('1 of bosses')
    await client.say(buildData(id, 'sent all the same'))
    expect(client.isClosed()).toBe(true)
  })

  test.each([
    ['rejected', 'rejected by boss: not today'],
    ['expired', 'nobody has answered in time'],
  ] as const)('%s: its words are shown, and the channel ends', async (state, text) => {
    const client = newClient([PENDING])
    const id = await client.session()
    await client.say(buildShell(id, true))
    client.shown()
    await client.approval(state, text)
    expect(client.types()).toEqual([
      MSG.channelExtendedData,
      MSG.channelRequest,
      MSG.channelEof,
      MSG.channelClose,
    ])
    expect(client.shown()).toContain(`sallyport: ${text}\r\n`)
    expect(client.opened).toHaveLength(1)
    // One that the client opens afterwards reads the same.
    const next = await client.session(8)
    await client.say(buildShell(next, true))
    expect(client.shown()).toContain(text)
  })

  test('Ctrl-C withdraws it; typed bytes go nowhere', async () => {
    const client = newClient([PENDING])
    const id = await client.session()
    await client.say(buildPtyRequest(id, true, PTY), buildShell(id, true))
    await client.say(buildData(id, 'rm -rf /\r'), buildData(id, 'y\r'))
    expect(client.withdrawn).toEqual([])
    client.shown()
    await client.say(buildData(id, '\x03'))
    expect(client.withdrawn).toEqual(['A1'])
    expect(client.shown()).toContain('was withdrawn')
    expect(client.opened).toHaveLength(1)
  })

  test('a client that goes withdraws it, and leaves', async () => {
    const client = newClient([PENDING])
    const id = await client.session()
    await client.say(buildShell(id, true))
    await client.leave()
    expect([client.withdrawn, client.left, client.connections.approvals.count]).toEqual([
      ['A1'],
      ['token'],
      0,
    ])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('after the menu it comes back to the menu', async () => {
    const client = newClient([PENDING, PENDING], false)
    const id = await client.session()
    await client.say(buildPtyRequest(id, true, PTY), buildShell(id, true))
    await client.say(buildData(id, '1\r'))
    expect(client.opened).toMatchObject([{ target: TARGET }])
    client.shown()
    await client.approval('rejected', 'not you')
    expect(client.shown()).toMatch(/sallyport: not you[\s\S]*q to leave/)
    await client.say(buildData(id, '1\r'))
    expect(client.opened).toHaveLength(2)
    await client.say(buildData(id, '\x03'))
    expect(client.withdrawn).toEqual(['A1'])
    expect(client.shown()).toContain('q to leave')
  })
})

describe('while it is waited for (attack case 16)', () => {
  test('channels, forwards, the display and the agent wait with it, bounded; others are refused and counted', async () => {
    const client = newClient([PENDING])
    const id = await client.session()
    await client.say(
      buildChannelRequest(id, 'x11-req', true, Buffer.alloc(20)),
      buildChannelRequest(id, 'auth-agent-req@openssh.com', true, NOTHING),
      buildShell(id, true),
    )
    client.shown()
    const typeData = Buffer.from(`\0\0\0\x09127.0.0.1\0\0\0\x16\0\0\0\x09127.0.0.1\0\0\0\x01`, 'latin1')
    const forward = (sender: number) =>
      buildChannelOpen({ type: 'direct-tcpip', sender, window: 1e6, maxPacket: 32_768, typeData })
    await client.say(forward(20))
    await client.say(
      buildGlobalRequest({
        name: 'tcpip-forward',
        wantReply: true,
        data: Buffer.from('\0\0\0\0\0\0\0\x16', 'latin1'),
      }),
    )
    expect(await client.session(9)).toBe(-1)
    // None of them is answered, so none has carried a byte.
    expect(client.types()).toEqual([])
    await client.say(
      buildChannelOpen({
        type: 'tun@openssh.com',
        sender: 30,
        window: 1e6,
        maxPacket: 32_768,
        typeData: NOTHING,
      }),
    )
    expect(client.denied).toEqual(['channel tun@openssh.com'])
    expect(client.take(MSG.channelOpenFailure)).toHaveLength(1)
    for (let sender = 100; sender < 400; sender++) await client.say(forward(sender))
    expect(client.take(MSG.channelOpenFailure).length).toBeGreaterThan(0)
    expect(client.types()).toEqual([])
    await client.approval('rejected', 'no')
    // The listener was refused, every forward too, and the second channel reads why.
    expect(client.take(MSG.requestFailure)).toHaveLength(1)
    expect(client.take(MSG.channelOpenFailure).length).toBeGreaterThan(200)
    expect(client.take(MSG.channelOpenConfirmation)).toHaveLength(1)
    expect(client.opened).toHaveLength(1)
  })

  test('a client that forwards only waits unseen, and a channel that comes later shows why', async () => {
    const client = newClient([PENDING, DENIED])
    await client.say(
      buildGlobalRequest({
        name: 'tcpip-forward',
        wantReply: true,
        data: Buffer.from('\0\0\0\0\0\0\0\x16', 'latin1'),
      }),
    )
    expect([client.opened.length, client.types()]).toEqual([1, []])
    await client.approval('pending', 'boss2 agrees')
    const id = await client.session()
    await client.say(buildShell(id, true))
    expect(client.shown()).toMatch(/1 of bosses[\s\S]*boss2 agrees/)
    await client.say(buildClose(id))
    expect(client.withdrawn).toEqual([])
    await client.approval('accepted')
    expect(client.opened).toHaveLength(2)
  })

  test('the channel that shows it may close: another one shows it, the last one withdraws it', async () => {
    const client = newClient([PENDING])
    const first = await client.session(1)
    await client.session(2)
    await client.say(buildShell(first, true), buildClose(first))
    expect(client.withdrawn).toEqual([])
    const second = client.types().includes(MSG.channelOpenConfirmation) ? first + 1 : -1
    await client.say(buildShell(second, true))
    expect(client.shown()).toContain('1 of bosses')
    await client.say(buildClose(second))
    expect(client.withdrawn).toEqual(['A1'])
  })

  test('it is as patient as the approval, and no longer', async () => {
    const client = newClient([PENDING])
    const id = await client.session()
    await client.say(buildShell(id, true))
    vi.advanceTimersByTime(30 * MINUTE + LOBBY_IDLE_MS - 1_000)
    await client.settle()
    expect(client.isClosed()).toBe(false)
    vi.advanceTimersByTime(2_000)
    await client.settle()
    expect(client.shown()).toContain('nothing was asked for in time')
    expect(client.withdrawn).toEqual(['A1'])
  })

  test("another sign-in's approval opens nothing, and one whose sign-in is withdrawn ends", async () => {
    const client = newClient([PENDING])
    const id = await client.session()
    await client.say(buildShell(id, true))
    const notice = { type: 'approval', identity: 'other', approval: 'A1', state: 'accepted' } as const
    client.connections.approvals.noticed({ ...notice, text: '' })
    await client.settle()
    expect([client.opened.length, client.isClosed()]).toEqual([1, false])
    await client.notify({ type: 'leave', identity: 'token', reason: 'the user was disabled' })
    expect(client.shown()).toContain('the user was disabled')
    expect(client.withdrawn).toEqual(['A1'])
    await client.approval('accepted')
    expect(client.opened).toHaveLength(1)
  })
})

describe('a reason', () => {
  test('is typed on the terminal, then the approval is waited for, with both', async () => {
    const client = newClient([reasonNeeded('mandatory'), PENDING, DENIED])
    const id = await client.session()
    await client.say(buildPtyRequest(id, true, PTY), buildShell(id, true))
    expect(client.shown()).toContain('asks for a comment')
    await client.say(buildData(id, '\rdisk full\r'))
    await client.settle()
    await client.settle()
    expect(client.shown()).toMatch(/the comment may not be empty[\s\S]*1 of bosses/)
    await client.approval('accepted')
    const reason = { comment: 'disk full', ticket: '' }
    expect(client.opened).toMatchObject([{}, { reason }, { reason, approval: 'A1' }])
  })

  test('that is mandatory cannot be typed without a terminal, and the text says how to ask', async () => {
    const client = newClient([reasonNeeded('mandatory')])
    const id = await client.session()
    client.shown()
    await client.say(buildExec(id, true, Buffer.from('id')))
    expect(client.shown()).toContain(`sallyport approvals request ${TARGET} --comment COMMENT`)
    expect(client.opened).toHaveLength(1)
  })

  test('that is optional is left out without a terminal, and the input is still for the target', async () => {
    const client = newClient([reasonNeeded('optional'), DENIED])
    const id = await client.session()
    expect(client.windowOf()).toBe(0)
    await client.say(buildExec(id, true, Buffer.from('id')))
    expect(client.opened).toMatchObject([{}, { reason: { comment: '', ticket: '' } }])
    expect(client.shown()).toContain('denied by the test')
  })

  test('a gate that refuses every reason is asked three times', async () => {
    const again = reasonNeeded('optional', 'no such ticket')
    const client = newClient(Array.from({ length: 9 }, () => again))
    const id = await client.session()
    await client.say(buildExec(id, true, Buffer.from('id')))
    await client.settle()
    expect(client.opened.length).toBeLessThanOrEqual(4)
    expect(client.shown()).toContain('no such ticket')
    const forwarding = newClient(Array.from({ length: 9 }, () => again))
    await forwarding.say(
      buildGlobalRequest({
        name: 'tcpip-forward',
        wantReply: true,
        data: Buffer.from('\0\0\0\0\0\0\0\x16', 'latin1'),
      }),
    )
    expect(forwarding.opened.length).toBeLessThanOrEqual(2)
  })

  test('Ctrl-C at the question leaves', async () => {
    const client = newClient([reasonNeeded('mandatory')])
    const id = await client.session()
    await client.say(buildPtyRequest(id, true, PTY), buildShell(id, true), buildData(id, '\x03'))
    expect(client.shown()).toContain('the question was not answered')
    expect(client.opened).toHaveLength(1)
  })
})
