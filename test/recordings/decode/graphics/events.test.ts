import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FRAME, type Frame } from '../../../../recordings/container/frames.ts'
import { describeFrame } from '../../../../recordings/decode/describe.ts'
import {
  encodeDesktopSize,
  encodeKey,
  encodePointer,
  parseDesktopSize,
  parseKey,
  parsePointer,
} from '../../../../recordings/decode/graphics/events.ts'
import { exportText } from '../../../../recordings/decode/text/text.ts'
import { exportJson } from '../../../../recordings/show/export/json.ts'

const number = fc.maxSafeNat()

test('pointer, key and size come back from their payloads', () => {
  fc.assert(
    fc.property(number, number, number, number, (participant, buttons, x, y) => {
      const pointer = { participant, buttons, x, y }
      expect(parsePointer(encodePointer(pointer))).toEqual(pointer)
    }),
  )
  fc.assert(
    fc.property(number, fc.boolean(), fc.option(number), number, (participant, isDown, keysym, code) => {
      const press = {
        participant,
        isDown,
        ...(keysym !== null && { keysym, ...(code !== 0 && { code }) }),
      }
      expect(parseKey(encodeKey(press))).toEqual(press)
    }),
  )
  fc.assert(
    fc.property(fc.nat(0xffff), fc.nat(0xffff), (width, height) => {
      expect(parseDesktopSize(encodeDesktopSize({ width, height }))).toEqual({ width, height })
    }),
  )
})

test('what is cut, or no such payload, is nothing', () => {
  const whole = encodeKey({ participant: 1, isDown: true, keysym: 0xff0d, code: 28 })
  for (let length = 0; length < whole.length; length++) {
    expect(parseKey(whole.subarray(0, length))).toBeUndefined()
  }
  expect(parseDesktopSize(encodeDesktopSize({ width: 0x1_0000, height: 1 }))).toBeUndefined()
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (payload) => {
      for (const parse of [parsePointer, parseKey, parseDesktopSize]) parse(payload)
    }),
  )
})

test('a withheld key says nothing of which key it was', () => {
  expect(encodeKey({ participant: 0, isDown: true, code: 30 })).toEqual(Buffer.from([0, 3]))
})

test('exports tell of events and leave out pixels, keys only where all is told', async () => {
  const frames: Frame[] = [
    { type: FRAME.graphics, payload: Buffer.from('0000') },
    { type: FRAME.pixelFormat, payload: Buffer.alloc(16) },
    { type: FRAME.desktopSize, payload: encodeDesktopSize({ width: 800, height: 600 }) },
    { type: FRAME.key, payload: encodeKey({ participant: 0, isDown: true, keysym: 0x61 }) },
    { type: FRAME.pointer, payload: encodePointer({ participant: 2, buttons: 1, x: 5, y: 6 }) },
    { type: FRAME.clipboard, payload: Buffer.from('{"direction":"up","bytes":3,"text":"a\\u001bb"}') },
  ].map((frame, at) => ({ ...frame, channel: 1, time: at * 1e6 }) as Frame)
  async function* all() {
    yield* frames
  }
  const lines: unknown[] = []
  for await (const line of exportJson(all())) lines.push(JSON.parse(line))
  expect(lines).toEqual([
    { time: 2, channel: 1, type: 'desktop_size', data: { width: 800, height: 600 } },
    { time: 3, channel: 1, type: 'key', data: { participant: 0, isDown: true, keysym: 0x61 } },
    { time: 4, channel: 1, type: 'pointer', data: { participant: 2, buttons: 1, x: 5, y: 6 } },
    { time: 5, channel: 1, type: 'clipboard', data: { direction: 'up', bytes: 3, text: 'a\x1bb' } },
  ])
  let text = ''
  for await (const piece of exportText(all(), { channel: 1, place: 1, count: 1 })) text += piece
  expect(text).toBe(
    '[2.000 desktop_size width=800 height=600]\n[5.000 clipboard direction=up bytes=3 text=a\\u001bb]\n',
  )
  expect(describeFrame(frames[0]!)).toBe('[0.000 graphics bytes=4]')
})
