/** The bastion's screens as bitmaps: the decoder of recordings must restore the original. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { COLOUR, PALETTE } from '../../../../proxies/desktop/screens/palette.ts'
import { type Depth, depthFor, encodeCanvas } from '../../../../proxies/rdp/local/bitmaps.ts'
import { encodePlanes, planesOf } from '../../../../proxies/rdp/local/planes.ts'
import { encodeRuns } from '../../../../proxies/rdp/local/runs.ts'
import { RdpDesktop } from '../../../../recordings/decode/graphics/rdp/desktop.ts'
import { decodeInterleaved } from '../../../../recordings/decode/graphics/rdp/interleaved.ts'
import { decodePlanar } from '../../../../recordings/decode/graphics/rdp/planar.ts'
import { Canvas } from '../../../../src/drawing/canvas.ts'

const COLOURS = PALETTE.length / 3
/** The most colours possible, using all bits. */
const MANY = Uint32Array.from({ length: 256 }, (_, at) => Math.imul(at + 1, 0x9e3779) & 0xffffff)

function expectRead(pixels: Uint8Array, depth: 15 | 16 | 24): void {
  const colours = MANY.map((colour) => colour & (2 ** depth - 1))
  const encoded = encodeRuns(pixels, colours, depth === 24 ? 3 : 2)
  const { pixels: decoded } = decodeInterleaved(encoded, pixels.length, 1, depth)
  expect(decoded.length).toBe(pixels.length)
  expect(decoded.every((value, at) => value === colours[pixels[at]!])).toBe(true)
}

test.each([15, 16, 24] as const)('runs and pixels of %d bits are read as they were written', (depth) => {
  const run = fc.tuple(
    fc.oneof(fc.constantFrom(1, 2, 3, 31, 32, 33, 287, 288, 4000), fc.integer({ min: 1, max: 70 })),
    fc.nat(255),
  )
  fc.assert(
    fc.property(fc.array(run, { minLength: 1, maxLength: 40 }), (runs) => {
      expectRead(
        Uint8Array.from(runs.flatMap(([length, colour]) => new Array<number>(length).fill(colour))),
        depth,
      )
    }),
    { numRuns: 100 },
  )
  // The worst cases: no runs, and the shortest runs between single pixels.
  expectRead(
    Uint8Array.from({ length: 4096 }, (_, at) => at & 0xff),
    depth,
  )
  expectRead(
    Uint8Array.from({ length: 4096 }, (_, at) => (at & 3 ? 1 : (at >> 2) & 0xff)),
    depth,
  )
})

test('runs and pixels longer than an order can say', () => {
  expectRead(
    Uint8Array.from({ length: 140_000 }, (_, at) => (at < 70_000 ? 7 : at & 0xff)),
    16,
  )
})

test('planes are read as they were written', () => {
  const colours = Uint8Array.from({ length: 3 * 256 }, (_, at) => (at * 77 + (at >> 3)) & 0xff)
  const run = fc.tuple(
    fc.oneof(fc.constantFrom(1, 2, 3, 15, 16, 17, 31, 32, 47, 48), fc.nat(70)),
    fc.nat(255),
  )
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 16 }),
      fc.array(run, { minLength: 20, maxLength: 90 }),
      (words, runs) => {
        const width = 4 * words
        const all = runs.flatMap(([length, colour]) => new Array<number>(length + 1).fill(colour))
        const height = Math.max(1, Math.floor(all.length / width))
        const pixels = Uint8Array.from({ length: width * height }, (_, at) => all[at] ?? 0)
        const encoded = encodePlanes(pixels, width, planesOf(colours))
        const wanted = [...pixels].map((place) => [...colours.subarray(3 * place, 3 * place + 3)].join())
        const decoded = [...decodePlanar(encoded, width, height)]
        expect(
          decoded.map((pixel) => [pixel & 0xff, (pixel >> 8) & 0xff, (pixel >> 16) & 0xff].join()),
        ).toEqual(wanted)
      },
    ),
    { numRuns: 100 },
  )
})

test('a canvas of any size is drawn where it belongs, and nothing beside it', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 150 }),
      fc.integer({ min: 1, max: 150 }),
      fc.nat(50),
      fc.nat(50),
      fc.array(fc.nat(COLOURS - 1), { minLength: 1, maxLength: 7 }),
      fc.constantFrom<Depth>(15, 16, 24, 32),
      (width, height, left, top, colours, depth) => {
        const canvas = new Canvas(width, height)
        for (let at = 0; at < canvas.pixels.length; at++) {
          canvas.pixels[at] = colours[((at / 5) | 0) % colours.length]!
        }
        const desktop = new RdpDesktop({ width: 200, height: 200 })
        for (const { code, data } of encodeCanvas(left, top, canvas, depth)) {
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
              // Five bits per part are left.
              if (Math.abs(found - wanted) > (depth < 24 ? 7 : 0))
                expect([x, y, part, found]).toEqual([x, y, part, wanted])
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
  const bytesAt = (depth: Depth) =>
    encodeCanvas(0, 0, canvas, depth).reduce((sum, { data }) => sum + data.length, 0)
  expect(bytesAt(16)).toBeLessThan(20_000)
  expect(bytesAt(32)).toBeLessThan(150_000)
})

test('a depth that there is', () => {
  expect([4, 8, 15, 16, 24, 32].map(depthFor)).toEqual([16, 16, 15, 16, 24, 32])
})
