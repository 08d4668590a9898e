/** A few bytes of an RDP target that cost the drawing of its recording much memory or time. */
import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import { MAX_UPDATE } from '../../recordings/decode/graphics/rdp/message.ts'
import { RdpPainter } from '../../recordings/decode/graphics/rdp/painter.ts'
import { bitmap, message, words } from '../recordings/decode/graphics/rdp/updates.ts'

const MIB = 1024 * 1024
const SIZE = { width: 64, height: 64 }
/** Buffers besides the received data: a bitmap of 2^22 pixels, several times before it is collected. */
const CAP = 224 * MIB
/** Pixels between two pauses, each some nanoseconds: 4 Mi, and those of the bitmap that exceeded them. */
const PIXELS_PER_TURN = 8 * MIB
/** The most bitmaps of one update: their number has 16 bits. */
const MOST = 0xffff

const SQUARE = { width: 2048, height: 2048 }
/** Encodes runs of 65,535 values, and the rest. */
const runs = (count: number): Buffer => {
  const rest = Buffer.of(0xf3, count & 0xff, (count % 0xffff) >> 8, 7)
  rest.writeUInt16LE(count % 0xffff, 1)
  return Buffer.concat([
    ...Array<Buffer>(Math.floor(count / 0xffff)).fill(Buffer.of(0xf3, 0xff, 0xff, 7)),
    rest,
  ])
}
/** Encodes rows of 47 differences of 0 each: a byte of plane for 47 pixels. */
const planes = (width: number, height: number): Buffer =>
  Buffer.concat([Buffer.of(0x30), Buffer.alloc((3 * height * width) / 47, 0xf2)])

const COMPRESSED = 0x401
const CASES: Record<string, Buffer> = {
  'interleaved runs': bitmap({ ...SQUARE, depth: 8, flags: COMPRESSED, data: runs(2 ** 22) }),
  'planar runs': bitmap({
    ...{ width: 47 * 20, height: 1000, depth: 32, flags: COMPRESSED },
    data: planes(47 * 20, 1000),
  }),
  'no pixels': bitmap({ width: 0, height: 0xffff, depth: 32, flags: COMPRESSED, data: Buffer.of(0x30) }),
  'no pixels of rows that are high': bitmap({
    ...{ width: 0xffff, height: 0, depth: 8, flags: COMPRESSED },
    data: Buffer.alloc(0),
  }),
  'more pixels than there are': bitmap({ width: 0xffff, height: 0xffff, depth: 16, data: Buffer.alloc(0) }),
  'pixels beside the desktop': bitmap({
    ...{ ...SQUARE, depth: 8, flags: COMPRESSED, left: 64, top: 64 },
    data: runs(2 ** 22),
  }),
}

test.each(Object.entries(CASES))('bitmaps without end, each %s', (_name, one) => {
  const count = Math.min(MOST, Math.floor((MAX_UPDATE - 4) / one.length))
  const data = Buffer.concat([words(1, count), ...Array<Buffer>(count).fill(one)])
  const update = message(1, data)
  const painter = new RdpPainter(SIZE)
  const before = process.memoryUsage().arrayBuffers
  let [held, cost] = [0, 0]
  // Take as many turns as the drawing thread may use; there would be thousands.
  let rest: Uint8Array = update
  for (let turn = 0; turn < 24 && (rest.length > 0 || painter.isPaused); turn++) {
    const painted = painter.painted
    rest = rest.subarray(painter.paint(rest))
    cost = Math.max(cost, painter.painted - painted)
    held = Math.max(held, process.memoryUsage().arrayBuffers - before)
  }
  expect(held).toBeLessThan(CAP)
  expect(cost).toBeLessThanOrEqual(PIXELS_PER_TURN)
  expect(painter.stopped).toBeUndefined()
})
