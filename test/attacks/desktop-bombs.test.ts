/** A few bytes of a target that cost the drawing of its recording much memory. */
import { Buffer } from 'node:buffer'
import { constants, createDeflate } from 'node:zlib'
import { expect, test } from 'vitest'
import { ENCODING } from '../../proxies/vnc/codec/encodings.ts'
import { FRAME } from '../../recordings/container/frames.ts'
import { compactLength, rectangle, uint32, update } from '../proxies/vnc/codec/streams.ts'
import { begun } from '../recordings/decode/graphics/support.ts'

const MIB = 1024 * 1024
/** The most that a painter may hold besides its framebuffer. */
const CAP = 8 * MIB
const SIZE = { width: 64, height: 64 }
const ALL = { x: 0, y: 0, ...SIZE }

/** Returns a zlib stream of this many zeros. */
async function bomb(mib: number): Promise<Buffer> {
  const deflate = createDeflate({ level: 9 })
  const pieces: Buffer[] = []
  deflate.on('data', (piece: Buffer) => pieces.push(piece))
  const zeros = Buffer.alloc(MIB)
  for (let at = 0; at < mib; at++) {
    await new Promise<void>((resolve) => deflate.write(zeros, () => resolve()))
  }
  await new Promise<void>((resolve) => deflate.flush(constants.Z_SYNC_FLUSH, resolve))
  return Buffer.concat(pieces)
}

/** Returns the largest size of its buffers while it paints in pieces of 4 KiB. */
function held(graphics: Buffer): { bytes: number; stopped: string | undefined } {
  const painter = begun(SIZE)
  const before = process.memoryUsage().arrayBuffers
  let bytes = 0
  for (let at = 0; at < graphics.length; at += 4096) {
    painter.apply({ type: FRAME.graphics, payload: graphics.subarray(at, at + 4096) })
    bytes = Math.max(bytes, process.memoryUsage().arrayBuffers - before)
  }
  return { bytes, stopped: painter.stopped }
}

const NAMED = 0xffff_fff0
/** After these the position of the next message is unknown; the others are valid so far, or skipped. */
const STOPPING = ['a name without end', 'a cursor of 65,535 × 65,535', 'a desktop of 65,535 × 65,535']

test('what a target deflates, or says to be long, takes no more memory than the desktop has pixels', async () => {
  const zeros = await bomb(64)
  const piece = [uint32(zeros.length), zeros]
  const long = Buffer.alloc(MIB, 0x5a)
  const cases = {
    zlib: rectangle(ALL, ENCODING.ZLIB, ...piece),
    zrle: rectangle(ALL, ENCODING.ZRLE, ...piece),
    tight: rectangle(ALL, ENCODING.TIGHT, Buffer.of(0), compactLength(zeros.length), zeros),
    'zlib without end': rectangle(ALL, ENCODING.ZLIB, uint32(NAMED), zeros),
    'a name without end': rectangle(ALL, ENCODING.DESKTOP_NAME, uint32(NAMED), long),
    'subrectangles without end': rectangle(ALL, ENCODING.RRE, uint32(NAMED), Buffer.alloc(MIB)),
    'a JPEG of 4 MiB': rectangle(ALL, ENCODING.TIGHT, Buffer.of(0x90, 0xff, 0xff, 0xff), long),
    'a cursor of 65,535 × 65,535': rectangle(
      { ...ALL, width: 0xffff, height: 0xffff },
      ENCODING.CURSOR,
      long,
    ),
    'a desktop of 65,535 × 65,535': rectangle(
      { ...ALL, width: 0xffff, height: 0xffff },
      ENCODING.DESKTOP_SIZE,
      long,
    ),
  }
  for (const [name, bytes] of Object.entries(cases)) {
    const { bytes: most, stopped } = held(update(bytes))
    expect([name, most < CAP]).toEqual([name, true])
    expect([name, stopped !== undefined]).toEqual([name, STOPPING.includes(name)])
  }
})
