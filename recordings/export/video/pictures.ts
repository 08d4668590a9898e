/** A channel as pictures at an even pace, for an encoder. */
import { Buffer } from 'node:buffer'
import { FRAME } from '../../frames.ts'
import type { Channel } from '../../index/directory.ts'
import { canvasFor, drawTerminal } from '../../picture/terminal.ts'
import type { Size } from '../../replay/emulator.ts'
import type { Replay } from '../../replay/replay.ts'
import { sizeOf } from '../payload.ts'

/** Pictures a second. */
export const RATE = 10
/** Microseconds of nothing that are shown at most. */
const IDLE_LIMIT = 2e6
const PICTURE = 1e6 / RATE

/** The largest size that the channel's terminal ever has. */
export async function largestSize(replay: Replay, channel: Channel): Promise<Size> {
  let { columns, rows } = channel
  for await (const frame of replay.frames(channel)) {
    const size = frame.type === FRAME.resize ? sizeOf(frame.payload) : undefined
    if (!size) continue
    columns = Math.max(columns, size.columns)
    rows = Math.max(rows, size.rows)
  }
  return { columns, rows }
}

/** Pixels of one picture after the other; one that is the same as before is the same buffer. */
export async function* picturesOf(replay: Replay, channel: Channel, size: Size): AsyncGenerator<Buffer> {
  const canvas = canvasFor(size)
  const head = await replay.at(channel, channel.opened)
  const draw = async () => {
    await head.screen.emulator.settle()
    drawTerminal(canvas, head.screen.emulator)
    return Buffer.from(canvas.pixels)
  }
  try {
    let picture = await draw()
    let isChanged = false
    /** Of the video, in microseconds. */
    let shown = 0
    let now = 0
    for (let next = head.next; next; next = head.next) {
      now += Math.min(next.time - head.time, IDLE_LIMIT)
      while (shown + PICTURE <= now) {
        if (isChanged) picture = await draw()
        isChanged = false
        shown += PICTURE
        yield picture
      }
      await head.step()
      isChanged = true
    }
    picture = await draw()
    for (let rest = 0; rest < RATE; rest++) yield picture
  } finally {
    await head.close()
  }
}
