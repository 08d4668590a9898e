/**
 * RDP's bitmaps and pointers against FreeRDP's library: its encodings, and its decoding of the same bytes.
 */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeInterleaved } from '../../../../../recordings/decode/graphics/rdp/interleaved.ts'
import { decodePlanar } from '../../../../../recordings/decode/graphics/rdp/planar.ts'
import { parseNewPointer } from '../../../../../recordings/decode/graphics/rdp/pointer.ts'
import { describeWithPeers } from '../../../../peers/program.ts'
import {
  CODEC_PEERS,
  fromInterleaved,
  fromPlanar,
  fromPointer,
  interleaved,
  type Pixels,
  PLANAR,
  planar,
} from '../../../../peers/rdp/codecs.ts'
import { grey } from './updates.ts'

/** Pictures like those of desktops: few colours, runs of one colour, repeated rows. */
const pictures = fc
  .record({
    columns: fc.integer({ min: 1, max: 16 }),
    height: fc.integer({ min: 1, max: 40 }),
    colours: fc.array(fc.nat(0xff_ffff), { minLength: 1, maxLength: 5 }),
    runs: fc.array(fc.tuple(fc.nat(4), fc.integer({ min: 1, max: 150 })), { minLength: 1, maxLength: 60 }),
    repeated: fc.nat(3),
  })
  .map(({ columns, height, colours, runs, repeated }): Pixels => {
    const width = columns * 4
    const rgbx = Buffer.alloc(width * height * 4)
    let at = 0
    for (let turn = 0; at < width * height; turn++) {
      const [which, length] = runs[turn % runs.length]!
      const colour = colours[which % colours.length]!
      for (let end = Math.min(at + length, width * height); at < end; at++) rgbx.writeUInt32LE(colour, at * 4)
    }
    for (let row = 1; row < height; row++) {
      if (repeated > 0 && row % (repeated + 1) !== 0) {
        rgbx.copy(rgbx, row * width * 4, (row - 1) * width * 4, row * width * 4)
      }
    }
    return { width, height, rgbx }
  })

/** Returns values 0xBBGGRR, the lowest row first as in updates. */
function values({ width, height, rgbx }: Pixels, isFlipped = true): number[] {
  const rows = Array.from({ length: height }, (_, row) => (isFlipped ? height - 1 - row : row))
  return rows.flatMap((row) =>
    Array.from({ length: width }, (_, column) => rgbx.readUIntLE((row * width + column) * 4, 3)),
  )
}

function flipped(pixels: Uint32Array, { width, height }: Pixels): number[] {
  const rows = Array.from({ length: height }, (_, row) => height - 1 - row)
  return rows.flatMap((row) => [...pixels.subarray(row * width, (row + 1) * width)])
}

const exchanged = (colour: number): number => ((colour & 0xff) << 16) | (colour & 0xff00) | (colour >> 16)

const withoutAlpha = (pixels: Uint32Array): number[] => Array.from(pixels, (pixel) => pixel & 0xff_ffff)

describeWithPeers("as FreeRDP's codecs", CODEC_PEERS, () => {
  test.each([15, 16, 24] as const)('interleaved, %i bits', (depth) => {
    fc.assert(
      fc.property(pictures, (picture) => {
        const encoded = interleaved(picture, depth)
        const { pixels } = decodeInterleaved(encoded, picture.width, picture.height, depth)
        // Not compared to the picture: in the first pixel of a row of 24 bits FreeRDP sometimes encodes bytes
        // that were in memory.
        const theirs = fromInterleaved(encoded, picture.width, picture.height, depth)
        expect(flipped(pixels, picture)).toEqual(theirs)
      }),
      { numRuns: 150 },
    )
  })

  test.each([
    ['raw', 0],
    ['raw, without alpha', PLANAR.withoutAlpha],
    ['encoded', PLANAR.encoded],
    ['encoded, without alpha', PLANAR.encoded | PLANAR.withoutAlpha],
  ])('planar, %s', (_title, flags) => {
    fc.assert(
      fc.property(pictures, (picture) => {
        const { width, height } = picture
        const encoded = planar(picture, flags)
        const pixels = withoutAlpha(decodePlanar(encoded, width, height))
        expect(pixels).toEqual(values(picture))
        expect(pixels).toEqual(values(fromPlanar(encoded, width, height), false))
      }),
      { numRuns: 100 },
    )
  })

  test.each([1, 2, 3, 4, 5, 6, 7])('planar, luma and chroma that has lost %i bits', (loss) => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 48, maxLength: 48 }), (planes) => {
        const encoded = Buffer.concat([Buffer.of(PLANAR.withoutAlpha | loss), planes, Buffer.of(0)])
        // As in the specification; FreeRDP exchanges red and blue here, but not in the equal case of NSCodec.
        const pixels = withoutAlpha(decodePlanar(encoded, 4, 4))
        expect(pixels.map(exchanged)).toEqual(values(fromPlanar(encoded, 4, 4), false))
      }),
      { numRuns: 100 },
    )
  })

  test.each([1, 24, 32])('pointers of %i bits', (depth) => {
    const size = { width: 8, height: 4 }
    const [row, bits] = [Math.ceil((size.width * depth) / 16) * 2, 2]
    fc.assert(
      fc.property(
        // Many of them black or white: these are drawn in another way when transparent.
        fc.array(fc.constantFrom(0, 0, 0xff, 0xff, 1, 0x80), { minLength: row * 4, maxLength: row * 4 }),
        fc.uint8Array({ minLength: bits * 4, maxLength: bits * 4 }),
        (colours, transparency) => {
          const [xor, and] = [Buffer.from(colours), Buffer.from(transparency)]
          const head = [depth, 0, 0, 0, size.width, size.height, and.length, xor.length]
          const data = Buffer.concat([Buffer.from(Uint16Array.from(head).buffer), xor, and])
          const { pixels } = parseNewPointer(data, grey).cursor
          const theirs = fromPointer(size, depth, xor, and).rgbx
          for (let at = 0; at < pixels.length; at++) {
            const [ours, alpha] = [pixels[at]!, theirs[at * 4 + 3]!]
            expect(ours >>> 24).toBe(alpha)
            if (alpha === 0xff) expect(ours & 0xff_ffff).toBe(theirs.readUIntLE(at * 4, 3))
          }
        },
      ),
      { numRuns: 100 },
    )
  })
})
