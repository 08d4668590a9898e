/** The film of a terminal. */
import { Buffer } from 'node:buffer'
import { FRAME } from '../../../container/frames.ts'
import { sizeOf } from '../../../decode/frames/payload.ts'
import type { Size } from '../../../decode/terminal/emulator.ts'
import type { Channel } from '../../index/directory.ts'
import { PALETTE } from '../../picture/palette.ts'
import { canvasFor, drawTerminal } from '../../picture/terminal.ts'
import type { Replay } from '../../replay/replay.ts'
import { type Film, picturesOf } from './film.ts'

export async function terminalFilm(replay: Replay, channel: Channel): Promise<Film> {
  const canvas = canvasFor(await largestSize(replay, channel))
  const head = await replay.at(channel, channel.opened)
  const { width, height } = canvas
  const pictures = picturesOf(head, ({ emulator }) => {
    drawTerminal(canvas, emulator)
    return inColours(canvas.pixels)
  })
  return { width, height, pixels: 'rgb24', pictures }
}

/** Returns the largest columns and rows of the channel's terminal. */
async function largestSize(replay: Replay, channel: Channel): Promise<Size> {
  let { columns, rows } = channel
  for await (const frame of replay.frames(channel)) {
    const size = frame.type === FRAME.resize ? sizeOf(frame.payload) : undefined
    if (!size) continue
    columns = Math.max(columns, size.columns)
    rows = Math.max(rows, size.rows)
  }
  return { columns, rows }
}

function inColours(pixels: Uint8Array): Buffer {
  const colours = Buffer.allocUnsafe(pixels.length * 3)
  for (let from = 0, to = 0; from < pixels.length; from++) {
    const at = pixels[from]! * 3
    colours[to++] = PALETTE[at]!
    colours[to++] = PALETTE[at + 1]!
    colours[to++] = PALETTE[at + 2]!
  }
  return colours
}
