/**
 * ttyrec (ttyplay(1)) of one channel, or of all: for each piece of output seconds, microseconds and length,
 * 32 bits each, little-endian, then the bytes, filtered unless raw bytes are requested. The format has no
 * input, no sizes, and no place to list channels that are left out.
 */
import { Buffer } from 'node:buffer'
import type { Metadata } from '../../container/format/header.ts'
import { FRAME, type Frame } from '../../container/frames.ts'
import { framesOfChannel, type Shown } from '../../decode/frames/channel.ts'
import { ChannelOutput } from './output.ts'

const HEADER_LENGTH = 12

export async function* exportTtyrec(
  frames: AsyncIterable<Frame>,
  { channel }: Shown,
  metadata: Metadata,
  { isRaw = false }: { isRaw?: boolean } = {},
): AsyncGenerator<Buffer> {
  const said = typeof metadata['begin'] === 'string' ? Date.parse(metadata['begin']) : Number.NaN
  const begin = Number.isFinite(said) ? said * 1000 : 0
  const output = new ChannelOutput({ isRaw, isNamed: channel === 'all' })
  for await (const frame of framesOfChannel(frames, channel)) {
    output.see(frame)
    if (frame.type !== FRAME.output && frame.type !== FRAME.errorOutput) continue
    const payload = isRaw ? frame.payload : Buffer.from(output.shown(frame))
    const now = begin + frame.time
    const header = Buffer.alloc(HEADER_LENGTH)
    header.writeUInt32LE(Math.floor(now / 1e6) % 2 ** 32, 0)
    header.writeUInt32LE(now % 1e6, 4)
    header.writeUInt32LE(payload.length, 8)
    yield Buffer.concat([header, payload])
  }
}
