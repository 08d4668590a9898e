/**
 * ttyrec (ttyplay(1)) of one channel: for each piece of output seconds, microseconds and length, 32 bits each,
 * little-endian, then the bytes as they were. It knows no input and no sizes.
 */
import { Buffer } from 'node:buffer'
import type { Metadata } from '../format/header.ts'
import { FRAME, type Frame } from '../frames.ts'
import { framesOfChannel } from './channel.ts'

const HEADER_LENGTH = 12

export async function* exportTtyrec(
  frames: AsyncIterable<Frame>,
  channel: number,
  metadata: Metadata,
): AsyncGenerator<Buffer> {
  const said = typeof metadata['begin'] === 'string' ? Date.parse(metadata['begin']) : Number.NaN
  const begin = Number.isFinite(said) ? said * 1000 : 0
  for await (const { type, time, payload } of framesOfChannel(frames, channel)) {
    if (type !== FRAME.output && type !== FRAME.errorOutput) continue
    const now = begin + time
    const header = Buffer.alloc(HEADER_LENGTH)
    header.writeUInt32LE(Math.floor(now / 1e6) % 2 ** 32, 0)
    header.writeUInt32LE(now % 1e6, 4)
    header.writeUInt32LE(payload.length, 8)
    yield Buffer.concat([header, payload])
  }
}
