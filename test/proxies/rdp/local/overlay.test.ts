/** The bastion's lines over a target's desktop: time and place of drawing, and the redraw afterwards. */
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { COLOUR, PALETTE } from '../../../../proxies/desktop/screens/palette.ts'
import type { Rectangle } from '../../../../proxies/desktop/screens/scene.ts'
import { OVERLAY_SECONDS, Overlay } from '../../../../proxies/rdp/local/overlay.ts'
import { RdpDesktop } from '../../../../recordings/decode/graphics/rdp/desktop.ts'
import { readText } from '../../desktop/screens/reading.ts'

const DESKTOP = { width: 800, height: 600, depth: 32 }
const OVER = 1000 * OVERLAY_SECONDS

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function setting(desktop = DESKTOP) {
  const picture = new RdpDesktop(desktop)
  const state = { isBusy: false, drawn: 0, refreshed: [] as Rectangle[] }
  const overlay = new Overlay({
    isBusy: () => state.isBusy,
    draw: ({ code, data }) => {
      expect(state.isBusy).toBe(false)
      state.drawn++
      for (const _pause of picture.update(code, data));
    },
    refresh: (area) => state.refreshed.push(area),
    now: () => Date.now(),
  })
  return { overlay, state, picture }
}

/** Returns the text in the lines' own colours. */
function shownOn({ framebuffer }: RdpDesktop): string[] {
  const { width, height, bytes } = framebuffer
  const [red, green] = PALETTE.subarray(3 * COLOUR.barText)
  const pixels = new Uint8Array(width * height)
  for (let at = 0; at < pixels.length; at++) {
    pixels[at] = bytes[4 * at] === red && bytes[4 * at + 1] === green ? 1 : 0
  }
  return readText({ width, height, pixels }, 1).map(({ text }) => text)
}

test('it is drawn on a desktop that the target draws on, and what was there is asked for when it is over', async () => {
  const { overlay, state, picture } = setting()
  overlay.show('The session ends in 5 minutes.')
  await vi.advanceTimersByTimeAsync(500)
  overlay.desktop(DESKTOP)
  await vi.advanceTimersByTimeAsync(500)
  expect(state.drawn, 'the client is not ready for pictures').toBe(0)
  overlay.painted()
  await vi.advanceTimersByTimeAsync(250)
  expect(shownOn(picture)).toEqual(['The session ends in 5 minutes.'])
  const { drawn } = state
  await vi.advanceTimersByTimeAsync(2000)
  expect(state.drawn, 'nobody has drawn over it').toBe(drawn)
  picture.framebuffer.bytes.fill(0)
  overlay.painted()
  await vi.advanceTimersByTimeAsync(250)
  expect(shownOn(picture)).toEqual(['The session ends in 5 minutes.'])
  expect(state.refreshed).toEqual([])
  await vi.advanceTimersByTimeAsync(OVER)
  expect(state.refreshed).toHaveLength(1)
  const [{ left, top, width, height }] = state.refreshed as [Rectangle]
  picture.framebuffer.bytes.forEach((part, at) => {
    const [x, y] = [(at >> 2) % 800, Math.floor((at >> 2) / 800)]
    const isInside = left <= x && x < left + width && top <= y && y < top + height
    if ((at & 3) < 3 && !isInside && part !== 0) throw new Error(`something is drawn at ${x}, ${y}`)
  })
  const before = state.drawn
  overlay.painted()
  await vi.advanceTimersByTimeAsync(OVER)
  expect([state.drawn, state.refreshed.length]).toEqual([before, 1])
  expect(vi.getTimerCount()).toBe(0)
})

test('not while an update is under way; a second message stands below the first and goes after it', async () => {
  const { overlay, state, picture } = setting()
  overlay.desktop(DESKTOP)
  overlay.painted()
  state.isBusy = true
  overlay.show('one', 2)
  await vi.advanceTimersByTimeAsync(1000)
  expect(state.drawn).toBe(0)
  state.isBusy = false
  await vi.advanceTimersByTimeAsync(250)
  expect(shownOn(picture)).toEqual(['one'])
  overlay.show('two, which is longer', 3)
  overlay.show('two, which is longer', 3)
  await vi.advanceTimersByTimeAsync(250)
  expect(shownOn(picture)).toEqual(['one', 'two, which is longer'])
  await vi.advanceTimersByTimeAsync(1500)
  expect(shownOn(picture)[0]).toBe('two, which is longer')
  expect(state.refreshed, 'where the first one was').toHaveLength(1)
  await vi.advanceTimersByTimeAsync(2000)
  expect(state.refreshed).toHaveLength(2)
  overlay.close()
})

test('a new desktop gets it in its depth; one of 8 bits none; nothing after the end', async () => {
  const { overlay, state, picture } = setting()
  overlay.desktop({ ...DESKTOP, depth: 8 })
  overlay.painted()
  overlay.show('still there', 60)
  await vi.advanceTimersByTimeAsync(1000)
  expect(state.drawn).toBe(0)
  for (const depth of [15, 16, 24, 32]) {
    overlay.deactivated()
    const { drawn } = state
    await vi.advanceTimersByTimeAsync(1000)
    overlay.desktop({ ...DESKTOP, depth })
    await vi.advanceTimersByTimeAsync(1000)
    expect(state.drawn).toBe(drawn)
    overlay.painted()
    await vi.advanceTimersByTimeAsync(250)
    expect(state.drawn).toBeGreaterThan(drawn)
  }
  expect(shownOn(picture)).toEqual(['still there'])
  overlay.close()
  const { drawn } = state
  overlay.painted()
  overlay.desktop(DESKTOP)
  await vi.advanceTimersByTimeAsync(60_000)
  expect([state.drawn, state.refreshed]).toEqual([drawn, []])
  expect(vi.getTimerCount()).toBe(0)
})

test('messages without end are a few lines', async () => {
  const { overlay, state, picture } = setting()
  overlay.desktop(DESKTOP)
  overlay.painted()
  for (let number = 0; number < 1000; number++) overlay.show(`message ${number}`)
  await vi.advanceTimersByTimeAsync(250)
  expect(shownOn(picture)).toEqual(['message 996', 'message 997', 'message 998', 'message 999'])
  expect(state.drawn).toBeLessThan(30)
  expect(state.refreshed.length).toBeLessThan(3)
  overlay.close()
})

test('any text on any desktop stays inside of it', () => {
  const size = fc.record({ width: fc.integer({ min: 1, max: 900 }), height: fc.integer({ min: 1, max: 90 }) })
  fc.assert(
    fc.property(
      size,
      fc.array(fc.string({ unit: 'binary', maxLength: 300 }), { maxLength: 5 }),
      (desktop, texts) => {
        const { overlay, state } = setting({ ...desktop, depth: 16 })
        overlay.desktop({ ...desktop, depth: 16 })
        overlay.painted()
        for (const text of texts) overlay.show(text)
        vi.advanceTimersByTime(2 * OVER)
        for (const { left, top, width, height } of state.refreshed) {
          expect(Math.min(left, top, width - 1, height - 1)).toBeGreaterThanOrEqual(0)
          expect([left + width <= desktop.width, top + height <= desktop.height]).toEqual([true, true])
        }
        expect(vi.getTimerCount()).toBe(0)
      },
    ),
    { numRuns: 60 },
  )
})
