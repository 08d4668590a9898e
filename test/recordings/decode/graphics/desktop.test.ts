import type { Buffer } from 'node:buffer'
import { expect, test, vi } from 'vitest'
import { FRAME, type Frame } from '../../../../recordings/container/frames.ts'
import { encodePointer } from '../../../../recordings/decode/graphics/events.ts'
import { Allowance, DESKTOP_LIMITS } from '../../../../recordings/show/index/allowance.ts'
import { Desktop } from '../../../../recordings/show/replay/desktop.ts'
import { begun, filled } from './support.ts'

const SIZE = { width: 300, height: 200 }
const ALL = { x: 0, y: 0, ...SIZE }

const frame = (type: Frame['type'], payload: Buffer): Frame => ({ type, channel: 0, time: 0, payload })
const coloured = (colour: number) => frame(FRAME.graphics, filled(ALL, colour))

test('what is exported is drawn as long as there is processor time, and then says that it is not', async () => {
  let used = 0
  const painter = begun(SIZE)
  const paint = painter.paint.bind(painter)
  // Each update takes two turns: its head, and its rectangle.
  const painting = vi.spyOn(painter, 'paint').mockImplementation((bytes) => {
    used += DESKTOP_LIMITS.base / 4
    return paint(bytes)
  })
  const desktop = new Desktop(painter, new Allowance(() => used, DESKTOP_LIMITS))
  const first = () => desktop.picture.pixels[0]
  await desktop.apply(coloured(0xff0000))
  await desktop.apply(coloured(0x00ff00))
  expect(first()).toBe(0xff00ff00)
  expect(desktop.stopped).toBeUndefined()
  expect(desktop.picture).toBe(painter.framebuffer)

  // Its few bytes earn one turn.
  await desktop.apply(coloured(0x0000ff))
  await desktop.apply(frame(FRAME.pointer, encodePointer({ participant: 0, buttons: 0, x: 1, y: 1 })))
  const turns = painting.mock.calls.length
  await desktop.apply(coloured(0x0000ff))
  expect(painting.mock.calls.length).toBe(turns)
  expect(first()).toBe(0xff00ff00)
  expect(desktop.stopped).toMatch(/more time to draw/)
  expect(desktop.picture.pixels.at(-1)).toBe(0xff0000a0)
})
