/** The relay of RDP between two peers that send anything: it continues, or ends with a readable reason. */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { buildConfirmActive, buildDemandActive } from '../../proxies/rdp/codec/active.ts'
import { buildFastPathUpdate } from '../../proxies/rdp/codec/fast-path-output.ts'
import { buildFastPathInput } from '../../proxies/rdp/codec/input.ts'
import { buildDataIndication, buildDataRequest, buildDisconnect } from '../../proxies/rdp/codec/mcs.ts'
import { buildErrorInfo, ERROR_INFO } from '../../proxies/rdp/codec/session-pdus.ts'
import { buildDeactivateAll, buildShareData, DATA_PDU } from '../../proxies/rdp/codec/share.ts'
import { UPDATE } from '../../proxies/rdp/codec/updates.ts'
import { buildChunks } from '../../proxies/rdp/codec/virtual-channel.ts'
import { FRAME } from '../../recordings/container/frames.ts'
import type { Right } from '../../src/model/rights.ts'
import { clientCapabilities } from '../proxies/rdp/connection/target.ts'
import { CHANNELS, DESKTOP, newWorldWithDesktop, SHARE, type World } from '../proxies/rdp/relay-world.ts'
import { edited, edits } from './corpus.ts'

const RIGHTS: Right[] = ['RDP_CLIPBOARD_UP', 'RDP_CLIPBOARD_FILE', 'RDP_DRIVE', 'RDP_AUDIO_OUTPUT']
const IO = 1003
/** The user's id in the world's client: it follows its channels. */
const USER = IO + 1 + CHANNELS.length
const bytes = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')
const bitmap = Buffer.from('0100 0000 0102 0304'.replaceAll(' ', ''), 'hex')
const capabilities = clientCapabilities(DESKTOP)
const share = (type: number, body: Uint8Array) => buildShareData({ shareId: SHARE, type, body })
const LIST = bytes('02000000 06000000 0d000000 0000')
const REQUEST = bytes('04000000 04000000 0d000000')
const ANNOUNCE = bytes('72444144 01000000 08000000 04000000 686f6d6500000000 00000000')
const CREATE = bytes('10 03 4563686f00')

const down = (channel: number, data: Uint8Array) => buildDataIndication(channel, data)
const up = (channel: number, data: Uint8Array) => buildDataRequest(USER, channel, data)
const FROM_TARGET: Buffer[] = [
  down(IO, buildDemandActive({ shareId: SHARE, capabilities })),
  down(IO, buildDeactivateAll(SHARE)),
  down(IO, share(DATA_PDU.update, bitmap)),
  down(IO, share(DATA_PDU.pointer, bytes('0100000000000000'))),
  down(IO, buildShareData(buildErrorInfo(SHARE, ERROR_INFO.loggedOffByUser))),
  ...buildFastPathUpdate({ code: UPDATE.bitmap, data: bitmap }),
  ...buildFastPathUpdate({ code: UPDATE.bitmap, data: Buffer.alloc(20_000, 1) }),
  ...buildFastPathUpdate({ code: UPDATE.pointerHidden, data: Buffer.alloc(0) }),
  ...[ANNOUNCE, LIST, REQUEST, CREATE].flatMap((message, index) =>
    buildChunks(message).map((chunk) => down(IO + 1 + index, chunk)),
  ),
  buildDisconnect(3),
]
const FROM_CLIENT: Buffer[] = [
  up(IO, buildConfirmActive({ shareId: SHARE, capabilities }, USER)),
  up(IO, share(DATA_PDU.input, bytes('0100000000000000040000001e000000'))),
  up(IO, share(DATA_PDU.refreshRectangle, bytes('0100000000000000ff03ff02'))),
  buildFastPathInput([{ kind: 'key', code: 30, extended: 0, isDown: true }]),
  buildFastPathInput([{ kind: 'pointer', flags: 0x9000, x: 1, y: 2 }]),
  ...CHANNELS.flatMap((_, index) =>
    [LIST, ANNOUNCE].flatMap((message) => buildChunks(message).map((chunk) => up(IO + 1 + index, chunk))),
  ),
  buildDisconnect(3),
]

const said = fc.oneof(
  fc.tuple(fc.constant('target' as const), fc.constantFrom(...FROM_TARGET)),
  fc.tuple(fc.constant('client' as const), fc.constantFrom(...FROM_CLIENT)),
)
const picture = fc.constantFrom(FROM_TARGET[2]!, FROM_TARGET[5]!).map((one) => ['target', one] as const)
const changed = fc.tuple(said, edits).map(([[side, message], by]) => [side, edited(message, by)] as const)

function sayAll(world: World, messages: readonly (readonly ['client' | 'target', Buffer])[]): number {
  let heard = 0
  for (const [side, message] of messages) {
    const { stream } = world[side]
    if (stream.closed) break
    heard += message.length
    stream.say(message)
  }
  return heard
}

test('whatever both sides send, the session goes on or ends with a reason', async () => {
  const ends = { none: 0, reason: 0, success: 0 }
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(said, changed), { maxLength: 12 }), async (messages) => {
      const world = await newWorldWithDesktop({ rights: RIGHTS })
      const heard = sayAll(world, messages)
      const hasEnded = world.target.stream.closed
      await new Promise(setImmediate)
      expect(world.lastWords.length + world.closed.length <= 2).toBe(true)
      if (!hasEnded) {
        ends.none++
        expect(world.closed).toEqual([])
      } else if (world.lastWords.length > 0) {
        ends.reason++
        expect(world.lastWords[0]!.reason).toMatch(/protocol|target|desktop/)
      } else ends.success++
      for (const { reason = '' } of world.closed) expect(reason).not.toContain('internal')
      // Responses and buffers are in proportion; a line over the desktop has some 10 KiB.
      const out = world.client.stream.take().length + world.target.stream.take().length
      expect(out).toBeLessThan(heard * 8 + 32_768)
      const kept = world.frames.reduce((sum, [, payload]) => sum + payload.length, 0)
      expect(kept).toBeLessThan(heard * 8 + 1024)
    }),
    { numRuns: 250 },
  )
  expect(Math.min(...Object.values(ends))).toBeGreaterThan(3)
})

test('the client sees no picture that the recording has not', async () => {
  let pictures = 0
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(picture, changed), { maxLength: 12 }), async (messages) => {
      const world = await newWorldWithDesktop()
      for (const one of messages) {
        const before = world.frames.filter(([type]) => type === FRAME.graphics).length
        world.client.stream.take()
        sayAll(world, [one])
        const isShown = one[0] === 'target' && world.client.stream.take().includes(bitmap.subarray(4))
        const isKept = world.frames.filter(([type]) => type === FRAME.graphics).length > before
        if (!isShown) continue
        pictures++
        expect(isKept).toBe(true)
      }
    }),
    { numRuns: 150 },
  )
  expect(pictures).toBeGreaterThan(20)
})
