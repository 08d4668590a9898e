/** The channel held while its client announces its forwarding: the replies, and the messages kept. */
import { beforeEach, expect, test } from 'vitest'
import { buildPtyRequest, buildShell } from '../../../../proxies/ssh/codec/build.ts'
import { MSG, parseChannelRequest } from '../../../../proxies/ssh/codec/messages.ts'
import { type Allowance, HeldChannel } from '../../../../proxies/ssh/lobby/held-channel.ts'

const ID = 3
const NOTHING = Buffer.alloc(0)
const PTY = { terminal: 'xterm', columns: 80, rows: 24, widthPixels: 0, heightPixels: 0, modes: NOTHING }

let sent: Buffer[]
beforeEach(() => {
  sent = []
})

const held = (may: Partial<Allowance> = {}) =>
  new HeldChannel({
    id: ID,
    open: { type: 'session', sender: 9, window: 100_000, maxPacket: 32_768, typeData: NOTHING },
    send: (payload) => sent.push(payload),
    may: { has: () => true, terminal: true, ...may },
    onKnown: () => undefined,
    onClosed: () => undefined,
  })
const answers = () =>
  sent.map(([type]) => type).filter((type) => type === MSG.channelSuccess || type === MSG.channelFailure)
const kept = (channel: HeldChannel) =>
  channel.handOver()?.messages.map((payload) => parseChannelRequest(payload).type)

test('one terminal, and no second', () => {
  const channel = held()
  for (let n = 0; n < 2; n++) channel.message(buildPtyRequest(ID, true, PTY))
  channel.message(buildShell(ID, true))
  expect(answers()).toEqual([MSG.channelSuccess, MSG.channelFailure])
  expect(kept(channel)).toEqual(['pty-req', 'shell'])
})

test('none where a certificate forbids it: the client is told so before its terminal is raw', () => {
  const channel = held({ terminal: false })
  channel.message(buildPtyRequest(ID, true, PTY))
  channel.message(buildShell(ID, true))
  expect(answers()).toEqual([MSG.channelFailure])
  expect(kept(channel)).toEqual(['shell'])
})
