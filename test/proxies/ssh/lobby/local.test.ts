/** A channel of the bastion that prompts for a login: its timeout, and its end. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  buildChannelRequest,
  buildData,
  buildPtyRequest,
  buildShell,
} from '../../../../proxies/ssh/codec/build.ts'
import { MSG, parseChannelRequest } from '../../../../proxies/ssh/codec/messages.ts'
import { LOGON_TIMEOUT_MS, MENU_WINDOW } from '../../../../proxies/ssh/lobby/limits.ts'
import { LocalChannel, type LocalOptions } from '../../../../proxies/ssh/lobby/local.ts'
import type { Transport } from '../../../../proxies/ssh/transport/transport.ts'

const ID = 3
const PTY = {
  terminal: 'xterm',
  columns: 80,
  rows: 24,
  widthPixels: 0,
  heightPixels: 0,
  modes: Buffer.alloc(0),
}

let sent: Buffer[]
beforeEach(() => {
  sent = []
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function asking(more: Partial<LocalOptions> = {}, hasTerminal = true): LocalChannel {
  const client = { send: (payload: Uint8Array) => sent.push(Buffer.from(payload)) } as unknown as Transport
  const open = { type: 'session', sender: 9, window: 100_000, maxPacket: 32_768, typeData: Buffer.alloc(0) }
  const channel = new LocalChannel({
    id: ID,
    open,
    client,
    text: 'srv1:ssh asks for the login and password',
    question: { logon: { target: 'srv1:ssh' } },
    takeMotd: () => undefined,
    onChoice: () => undefined,
    onGiven: () => undefined,
    onClosed: () => undefined,
    ...more,
  })
  if (hasTerminal) channel.message(buildPtyRequest(ID, false, PTY))
  channel.message(buildShell(ID, false))
  return channel
}

const shown = () => Buffer.concat(sent).toString('latin1')
const types = () => sent.map(([type]) => type)

test('what is not answered in time ends the channel', () => {
  const channel = asking()
  expect(shown()).toContain('Login at srv1:ssh: ')
  channel.message(buildData(ID, 'root\r'))
  vi.advanceTimersByTime(LOGON_TIMEOUT_MS - 1)
  expect(types()).not.toContain(MSG.channelClose)
  vi.advanceTimersByTime(1)
  expect(shown()).toContain('nothing was answered in time')
  expect(types()).toContain(MSG.channelClose)
})

test('what was answered is not timed any more, and the password was not shown', () => {
  const onGiven = vi.fn()
  const channel = asking({ onGiven })
  channel.message(buildData(ID, 'root\rcanary\r'))
  vi.advanceTimersByTime(0)
  expect(onGiven).toHaveBeenCalledExactlyOnceWith({ logon: { login: 'root', password: 'canary' } })
  vi.advanceTimersByTime(LOGON_TIMEOUT_MS * 2)
  expect(types()).not.toContain(MSG.channelClose)
  expect(shown()).not.toContain('canary')
  channel.message(buildData(ID, 'more\r'))
  expect(onGiven).toHaveBeenCalledTimes(1)
})

test('without a terminal it is told why, and ends', () => {
  asking({}, false)
  expect(shown()).toContain('srv1:ssh asks for the login and password')
  expect(shown()).not.toContain('Login at')
  expect(types()).toContain(MSG.channelClose)
})

test('the display and the agent that were asked for before the question go on to the target', () => {
  const channel = new LocalChannel({
    id: ID,
    open: { type: 'session', sender: 9, window: 100_000, maxPacket: 32_768, typeData: Buffer.alloc(0) },
    client: { send: (payload: Uint8Array) => sent.push(Buffer.from(payload)) } as unknown as Transport,
    text: '',
    question: { logon: { target: 'srv1:ssh' } },
    takeMotd: () => undefined,
    onChoice: () => undefined,
    onGiven: () => undefined,
    onClosed: () => undefined,
  })
  for (const type of ['x11-req', 'auth-agent-req@openssh.com'])
    channel.message(buildChannelRequest(ID, type, true, Buffer.alloc(0)))
  expect(types().slice(1)).toEqual([MSG.channelSuccess, MSG.channelSuccess])
  channel.message(buildPtyRequest(ID, false, PTY))
  channel.message(buildShell(ID, false))
  expect(channel.hasAgent).toBe(true)
  const passed = channel.handOver()?.messages.map((payload) => parseChannelRequest(payload).type)
  expect(passed).toEqual(['x11-req', 'auth-agent-req@openssh.com', 'pty-req', 'shell'])
})

describe('the menu', () => {
  const TARGETS = Array.from({ length: 1000 }, (_, n) => ({
    target: `root@local:srv${n}:ssh`,
    description: '',
  }))

  async function menu(rows: number): Promise<LocalChannel> {
    const client = { send: (payload: Uint8Array) => sent.push(Buffer.from(payload)) } as unknown as Transport
    const open = { type: 'session', sender: 9, window: 2 ** 31, maxPacket: 32_768, typeData: Buffer.alloc(0) }
    const channel = new LocalChannel({
      id: ID,
      open,
      client,
      text: '',
      targets: async () => ({ targets: TARGETS, total: TARGETS.length }),
      takeMotd: () => undefined,
      onChoice: () => undefined,
      onGiven: () => undefined,
      onClosed: () => undefined,
    })
    channel.message(buildPtyRequest(ID, false, { ...PTY, rows }))
    channel.message(buildShell(ID, false))
    await Promise.resolve()
    return channel
  }
  const pages = () => shown().split('Your targets').length - 1

  test('deals with one line in each turn of the event loop, however many come, and grants no more meanwhile', async () => {
    const channel = await menu(24)
    expect(pages()).toBe(1)
    for (let n = 0; n < 40; n++) channel.message(buildData(ID, '\r'.repeat(100)))
    expect(pages()).toBe(2)
    expect(types()).not.toContain(MSG.channelWindowAdjust)
    for (let n = 0; n < 5; n++) vi.advanceTimersToNextTimer()
    expect(pages()).toBe(7)
    expect(() => channel.message(buildData(ID, '\r'.repeat(MENU_WINDOW)))).toThrow(/window/)
    vi.runAllTimers()
    expect(pages()).toBe(4001)
    expect(types()).toContain(MSG.channelWindowAdjust)
  })

  test('shows no more rows than a screen has, whatever the client says', async () => {
    await menu(0xffffffff)
    expect(shown()).toContain('(1-194 of 1000)')
  })
})
