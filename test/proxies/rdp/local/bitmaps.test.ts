/** Own screens as bitmaps: what the decoder of recordings makes of them is what was drawn. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { COLOUR, PALETTE } from '../../../../proxies/desktop/palette.ts'
import { encodeCanvas } from '../../../../proxies/rdp/local/bitmaps.ts'
import { encodeRuns } from '../../../../proxies/rdp/local/runs.ts'
import { RdpDesktop } from '../../../../recordings/graphics/rdp/desktop.ts'
import { decodeInterleaved } from '../../../../recordings/graphics/rdp/interleaved.ts'
import { Canvas } from '../../../../src/drawing/canvas.ts'

const COLOURS = PALETTE.length / 3
const isSame = (decoded: Uint32Array, pixels: Uint16Array) =>
  decoded.length === pixels.length && decoded.every((value, at) => value === pixels[at])

test('runs and pixels are read as they were written', () => {
  const run = fc.tuple(
    fc.oneof(fc.constantFrom(1, 2, 3, 31, 32, 33, 287, 288, 4000), fc.integer({ min: 1, max: 70 })),
    fc.nat(0xffff),
  )
  fc.assert(
    fc.property(fc.array(run, { minLength: 1, maxLength: 40 }), (runs) => {
      const pixels = Uint16Array.from(
        runs.flatMap(([length, colour]) => new Array<number>(length).fill(colour)),
      )
      const decoded = decodeInterleaved(encodeRuns(pixels), pixels.length, 1, 16)
      expect(isSame(decoded, pixels)).toBe(true)
    }),
    { numRuns: 100 },
  )
})

test('runs and pixels longer than an order can say', () => {
  const pixels = Uint16Array.from({ length: 140_000 }, (_, at) => (at < 70_000 ? 7 : at & 0xffff))
  expect(isSame(decodeInterleaved(encodeRuns(pixels), pixels.length, 1, 16), pixels)).toBe(true)
})

test('a canvas of any size is drawn where it belongs, and nothing beside it', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 150 }),
      fc.integer({ min: 1, max: 150 }),
      fc.nat(50),
      fc.nat(50),
      fc.array(fc.nat(COLOURS - 1), { minLength: 1, maxLength: 7 }),
      (width, height, left, top, colours) => {
        const canvas = new Canvas(width, height)
        for (let at = 0; at < canvas.pixels.length; at++) {
          canvas.pixels[at] = colours[((at / 5) | 0) % colours.length]!
        }
        const desktop = new RdpDesktop({ width: 200, height: 200 })
        for (const { code, data } of encodeCanvas(left, top, canvas)) {
          expect(data.length).toBeLessThan(16 * 1024)
          for (const _ of desktop.update(code, data));
        }
        const { bytes } = desktop.framebuffer
        for (let y = 0; y < 200; y++) {
          for (let x = 0; x < 200; x++) {
            const isInside = left <= x && x < left + width && top <= y && y < top + height
            const colour = isInside ? canvas.pixels[(y - top) * width + x - left]! : undefined
            for (const part of [0, 1, 2]) {
              const wanted = colour === undefined ? 0 : PALETTE[colour * 3 + part]!
              const found = bytes[(y * 200 + x) * 4 + part]!
              // Five bits of each are left.
              if (Math.abs(found - wanted) > 7) expect([x, y, part, found]).toEqual([x, y, part, wanted])
            }
          }
        }
      },
    ),
    { numRuns: 25 },
  )
})

test('a screen of few colours takes few bytes', () => {
  const canvas = new Canvas(1024, 768)
  canvas.fill(0, 0, 1024, 768, COLOUR.backdrop)
  canvas.fill(200, 100, 600, 500, COLOUR.panel)
  const bytes = encodeCanvas(0, 0, canvas).reduce((sum, { data }) => sum + data.length, 0)
  expect(bytes).toBeLessThan(20_000)
})
