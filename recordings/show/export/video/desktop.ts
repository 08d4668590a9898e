/** The film of a desktop: when its size changes, smaller pictures are centred in the largest one. */
import { Buffer } from 'node:buffer'
import { FRAME } from '../../../container/frames.ts'
import { parseDesktopSize } from '../../../decode/graphics/events.ts'
import { BLACK, type Framebuffer, MAX_PIXELS } from '../../../decode/graphics/framebuffer.ts'
import type { Size } from '../../../decode/graphics/rectangle.ts'
import type { Channel } from '../../index/directory.ts'
import type { Desktop } from '../../replay/desktop.ts'
import type { Playhead } from '../../replay/playhead.ts'
import type { Replay } from '../../replay/replay.ts'
import { type Film, picturesOf } from './film.ts'

/** `head` is the state at the channel's beginning. */
export async function desktopFilm(replay: Replay, channel: Channel, head: Playhead<Desktop>): Promise<Film> {
  const { width, height } = even(await largestSize(replay, channel, head.screen.picture))
  const frame = new Uint32Array(width * height).fill(BLACK)
  let shown = ''
  const draw = ({ picture }: Desktop) => {
    const size = `${picture.width} × ${picture.height}`
    if (size !== shown) frame.fill(BLACK)
    shown = size
    place(picture, frame, { width, height })
    return Buffer.from(frame.buffer)
  }
  const changes = ({ type }: { type: number }) => type === FRAME.graphics || type === FRAME.pointer
  return { width, height, pixels: 'rgb0', pictures: picturesOf(head, draw, changes) }
}

async function largestSize(replay: Replay, channel: Channel, first: Size): Promise<Size> {
  let { width, height } = first
  for await (const frame of replay.frames(channel)) {
    const size = frame.type === FRAME.desktopSize ? parseDesktopSize(frame.payload) : undefined
    if (!size || size.width * size.height > MAX_PIXELS) continue
    width = Math.max(width, size.width)
    height = Math.max(height, size.height)
  }
  // A wide and a high size can together exceed the limit.
  return width * height <= MAX_PIXELS ? { width, height } : first
}

function even({ width, height }: Size): Size {
  return { width: width + (width % 2), height: height + (height % 2) }
}

/** Centres the picture in the frame; parts that do not fit are left out. */
function place(picture: Framebuffer, frame: Uint32Array, { width, height }: Size): void {
  const left = Math.max(0, Math.floor((width - picture.width) / 2))
  const top = Math.max(0, Math.floor((height - picture.height) / 2))
  const columns = Math.min(picture.width, width)
  for (let y = 0; y < Math.min(picture.height, height); y++) {
    const from = y * picture.width
    frame.set(picture.pixels.subarray(from, from + columns), (top + y) * width + left)
  }
}
