/** An RDP channel's frames drawn: cut anywhere, continued from any snapshot, with any part broken. */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { FRAME } from '../../../../../recordings/container/frames.ts'
import { encodeDesktopSize, encodePointer } from '../../../../../recordings/decode/graphics/events.ts'
import type { Painter } from '../../../../../recordings/decode/graphics/painter.ts'
import { RdpPainter } from '../../../../../recordings/decode/graphics/rdp/painter.ts'
import { restorePainter } from '../../../../../recordings/decode/open-graphics.ts'
import { cut } from '../../../../proxies/stream-events.ts'
import { bitmap, bitmapUpdate, encodeUpdateHead, message, paletteUpdate, pointer, words } from './updates.ts'

const SIZE = { width: 32, height: 32 }
const [RED, GREEN, BLACK] = [0xff0000ff, 0xff00ff00, 0xff000000]

const filled = (left: number, top: number, colour: number): Buffer =>
  message(
    1,
    bitmapUpdate(
      bitmap({ left, top, width: 2, height: 2, depth: 16, data: words(colour, colour, colour, colour) }),
    ),
  )
const arrow = (cacheIndex: number, colour: string): Buffer =>
  message(9, pointer({ cacheIndex, width: 1, height: 1, colours: Buffer.from(`${colour}00`, 'hex') }))

const UPDATES = [
  filled(0, 0, 0xf800),
  message(2, paletteUpdate(Buffer.alloc(768, 0x0f))),
  message(1, bitmapUpdate(bitmap({ left: 4, width: 4, height: 1, depth: 8, data: words(0x0201, 0x0403) }))),
  arrow(1, '0000ff'),
  message(8, words(9, 9)),
  arrow(2, '00ff00'),
  filled(8, 8, 0x07e0),
  message(10, words(1)),
  message(5, Buffer.alloc(0)),
  filled(30, 30, 0xf800),
  message(6, Buffer.alloc(0)),
]

/** Returns all visible content, including the pointer. */
function shown(painter: Painter): unknown {
  return { pixels: [...painter.picture().pixels], stopped: painter.stopped }
}

function drawn(...payloads: Uint8Array[]): RdpPainter {
  const painter = new RdpPainter(SIZE)
  for (const payload of payloads) painter.apply({ type: FRAME.graphics, payload })
  return painter
}

test('the same wherever frames end', () => {
  const stream = Buffer.concat(UPDATES)
  const whole = shown(drawn(...UPDATES))
  fc.assert(
    fc.property(fc.array(fc.nat(stream.length), { maxLength: 12 }), (ends) => {
      expect(shown(drawn(...cut(stream, ends)))).toEqual(whole)
    }),
    { numRuns: 200 },
  )
})

test('the same from each snapshot on', () => {
  for (let done = 0; done <= UPDATES.length; done++) {
    const first = drawn(...UPDATES.slice(0, done))
    const mouse = { type: FRAME.pointer, payload: encodePointer({ participant: 0, buttons: 0, x: 3, y: 4 }) }
    first.apply(mouse)
    const state = JSON.parse(JSON.stringify(first.snapshot()))
    const second = restorePainter('rdp', state, first.framebuffer.clone())!
    expect(shown(second)).toEqual(shown(first))
    for (const payload of UPDATES.slice(done)) {
      first.apply({ type: FRAME.graphics, payload })
      second.apply({ type: FRAME.graphics, payload })
    }
    // Also a pointer of the cache, from an earlier update.
    for (const painter of [first, second]) {
      painter.apply({ type: FRAME.graphics, payload: message(10, words(2)) })
    }
    expect(shown(second)).toEqual(shown(first))
  }
  expect(restorePainter('rdp', {}, drawn().framebuffer)).toBeUndefined()
})

describe('frames', () => {
  test('there is no snapshot in the middle of an update', () => {
    const [one] = UPDATES
    expect(drawn(one!.subarray(0, 3)).snapshot()).toBeUndefined()
    expect(drawn(one!.subarray(0, one!.length - 1)).snapshot()).toBeUndefined()
    expect(drawn(one!).snapshot()).toBeDefined()
  })

  test('desktop_size changes the desktop, and what stays is kept', () => {
    const painter = drawn(UPDATES[0]!)
    painter.apply({ type: FRAME.desktopSize, payload: encodeDesktopSize({ width: 40, height: 2 }) })
    painter.apply({ type: FRAME.graphics, payload: filled(38, 0, 0x07e0) })
    const { width, height, pixels } = painter.framebuffer
    expect([width, height, pixels[0], pixels[39]]).toEqual([40, 2, RED, GREEN])
    painter.apply({
      type: FRAME.desktopSize,
      payload: encodeDesktopSize({ width: 65_535, height: 65_535 }),
    })
    expect(painter.stopped).toContain('expected a desktop of')
  })

  test('the pointer is where the user has it, or else where the target has put it', () => {
    const painter = drawn(arrow(1, '0000ff'))
    expect(painter.picture().pixels[5 * 32 + 4]).toBe(BLACK)
    painter.apply({ type: FRAME.graphics, payload: message(8, words(9, 9)) })
    expect(painter.picture().pixels[9 * 32 + 9]).toBe(RED)
    painter.apply({
      type: FRAME.pointer,
      payload: encodePointer({ participant: 0, buttons: 0, x: 4, y: 5 }),
    })
    expect(painter.picture().pixels[5 * 32 + 4]).toBe(RED)
    expect(painter.picture().pixels[9 * 32 + 9]).toBe(BLACK)
    expect(painter.framebuffer.pixels[5 * 32 + 4]).toBe(BLACK)
    expect(painter.pointer).toEqual({ x: 4, y: 5, width: 1, height: 1 })
    painter.apply({ type: FRAME.graphics, payload: message(5, Buffer.alloc(0)) })
    expect(painter.pointer).toBeUndefined()
    painter.apply({ type: FRAME.graphics, payload: message(6, Buffer.alloc(0)) })
    // The arrow's black edge, and white inside.
    expect(painter.picture().pixels[(5 + 3) * 32 + 4 + 1]).toBe(0xffffffff)
  })

  test('an update that cannot be drawn is counted, and the next ones are drawn', () => {
    const painter = drawn(message(1, words(1, 5)), message(77, Buffer.alloc(3)), UPDATES[0]!)
    expect(painter.flaws).toBe(2)
    expect(painter.stopped).toBeUndefined()
    expect(painter.framebuffer.pixels[0]).toBe(RED)
  })

  test('an update without end ends the picture', () => {
    const painter = drawn(encodeUpdateHead(1, 2 ** 24 + 1), UPDATES[0]!)
    expect(painter.stopped).toContain('at most 16777216 bytes')
    expect(painter.framebuffer.pixels[0]).toBe(BLACK)
    expect(painter.snapshot()).toBeUndefined()
  })
})
