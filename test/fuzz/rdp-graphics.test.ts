/**
 * RDP's graphics from a target that sends anything: drawn, or rejected with the one error; never a pixel
 * outside.
 */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import {
  BITMAP_PIXEL_LIMIT,
  POINTER_CACHE_LIMIT,
  POINTER_SIDE_LIMIT,
  requireDrawable,
} from '../../proxies/rdp/codec/picture-heads.ts'
import { isRecordable, UPDATE } from '../../proxies/rdp/codec/updates.ts'
import { MalformedGraphics } from '../../recordings/decode/graphics/malformed.ts'
import { MAX_BITMAP_PIXELS } from '../../recordings/decode/graphics/rdp/bitmap.ts'
import { RdpDesktop } from '../../recordings/decode/graphics/rdp/desktop.ts'
import { decodeInterleaved } from '../../recordings/decode/graphics/rdp/interleaved.ts'
import { decodePlanar } from '../../recordings/decode/graphics/rdp/planar.ts'
import {
  MAX_POINTER_SIDE,
  POINTER_CACHE_LIMIT as RECORDED_CACHE_LIMIT,
} from '../../recordings/decode/graphics/rdp/pointer.ts'
import {
  bitmap,
  bitmapUpdate,
  paletteUpdate,
  pointer,
  words,
} from '../recordings/decode/graphics/rdp/updates.ts'
import { times } from '../times.ts'

const SIZE = { width: 24, height: 16 }
const side = fc.oneof(fc.nat(30), fc.constantFrom(0, 1, 0xffff))
const data = fc.uint8Array({ maxLength: 300 })
/** Valid orders, more often than by chance. */
const orders = fc
  .array(
    fc.oneof(
      fc
        .constantFrom(0x04, 0x24, 0x64, 0x84, 0xc4, 0xe2, 0xf0, 0xf3, 0xf9, 0xfd, 0xfe, 0x41, 0x60)
        .map((code) => [code]),
      fc.array(fc.nat(255), { minLength: 1, maxLength: 4 }),
    ),
    { maxLength: 80 },
  )
  .map((parts) => Uint8Array.from(parts.flat()))

const bitmaps = fc.record({
  left: side,
  top: side,
  right: side,
  bottom: side,
  width: fc.oneof(fc.constant(SIZE.width), side),
  height: fc.oneof(fc.constant(SIZE.height), side),
  depth: fc.constantFrom(1, 8, 15, 16, 24, 32),
  flags: fc.constantFrom(0, 1, 0x400, 0x401),
  data: fc.oneof(data, orders),
})
const pointers = fc.record({
  cacheIndex: fc.nat(140),
  hotX: side,
  hotY: side,
  width: side,
  height: side,
  colours: data,
  transparency: data,
})
const updates = fc.oneof(
  fc.array(bitmaps, { maxLength: 3 }).map((list) => ({ code: 1, data: bitmapUpdate(...list.map(bitmap)) })),
  fc.tuple(fc.nat(15), data).map(([code, bytes]) => ({ code, data: Buffer.from(bytes) })),
  fc.uint8Array({ minLength: 768, maxLength: 768 }).map((bytes) => ({ code: 2, data: paletteUpdate(bytes) })),
  pointers.map((options) => ({ code: 9, data: pointer(options) })),
  fc
    .tuple(fc.constantFrom(1, 8, 15, 16, 24, 32, 7), pointers)
    .map(([depth, options]) => ({ code: 11, data: Buffer.concat([words(depth), pointer(options)]) })),
)

/** Whether it threw the known error. */
function isRefused(work: () => void): boolean {
  try {
    work()
    return false
  } catch (error) {
    if (error instanceof MalformedGraphics) return true
    throw error
  }
}

test('updates of any kind', () => {
  const count = { drawn: 0, refused: 0 }
  fc.assert(
    fc.property(fc.array(updates, { maxLength: 8 }), (list) => {
      const desktop = new RdpDesktop(SIZE)
      for (const { code, data } of list) {
        const refused = isRefused(() => {
          for (const _pause of desktop.update(code, data));
        })
        count[refused ? 'refused' : 'drawn'] += 1
      }
      expect(desktop.framebuffer.pixels.length).toBe(SIZE.width * SIZE.height)
      // No pixel of a desktop is transparent, whatever the input.
      expect(desktop.framebuffer.pixels.every((pixel) => pixel >>> 24 === 0xff)).toBe(true)
      for (const { x, y, width, height } of desktop.framebuffer.takeDirty()) {
        expect(x + width).toBeLessThanOrEqual(SIZE.width)
        expect(y + height).toBeLessThanOrEqual(SIZE.height)
      }
    }),
    { numRuns: times(400, 1_500) },
  )
  expect(Math.min(count.drawn, count.refused)).toBeGreaterThan(300)
})

test('bitmaps that are well but for their pixels', () => {
  fc.assert(
    fc.property(
      fc.oneof(data, orders),
      fc.constantFrom(8, 15, 16, 24),
      side,
      fc.nat(20),
      (source, depth, width, height) => {
        const { pixels, count, flaw } = decodeInterleaved(source, width, height, depth as 8)
        const highest = depth === 15 ? 0xffff : 2 ** depth - 1
        expect(pixels.every((value) => value <= highest)).toBe(true)
        expect(count).toBeLessThanOrEqual(pixels.length)
        if (!flaw) expect(count).toBe(pixels.length)
      },
    ),
    { numRuns: times(800, 3_000) },
  )
  fc.assert(
    fc.property(data, fc.nat(20), fc.nat(20), (source, width, height) => {
      isRefused(() => {
        expect(decodePlanar(source, width, height).length).toBe(width * height)
      })
    }),
    { numRuns: times(800, 3_000) },
  )
})

test('what passes the relay by its head is drawn, but for bitmaps whose orders are broken', () => {
  const count = { drawn: 0, refused: 0 }
  fc.assert(
    fc.property(updates, ({ code, data }) => {
      const isPassed = isRecordable(code) && !isMalformed(() => requireDrawable({ code, data }))
      if (!isPassed || (code === UPDATE.bitmap && hasCompressed(data))) {
        count.refused += 1
        return
      }
      count.drawn += 1
      const desktop = new RdpDesktop(SIZE)
      // A cached pointer that was never sent has no picture.
      if (code !== UPDATE.pointerCached) for (const _pause of desktop.update(code, data));
    }),
    { numRuns: times(1_500, 6_000) },
  )
  expect(Math.min(count.drawn, count.refused)).toBeGreaterThan(200)
  expect([BITMAP_PIXEL_LIMIT, POINTER_SIDE_LIMIT, POINTER_CACHE_LIMIT]).toEqual([
    MAX_BITMAP_PIXELS,
    MAX_POINTER_SIDE,
    RECORDED_CACHE_LIMIT,
  ])
})

/** Whether an update has a compressed bitmap. */
function hasCompressed(data: Uint8Array): boolean {
  const view = Buffer.from(data)
  for (let at = 4, left = view.readUInt16LE(2); left > 0; left--, at += 18 + view.readUInt16LE(at + 16)) {
    if (view.readUInt16LE(at + 14) & 1) return true
  }
  return false
}

function isMalformed(work: () => void): boolean {
  try {
    work()
    return false
  } catch (error) {
    if (error instanceof MalformedError) return true
    throw error
  }
}
