/** A channel as pictures at a steady rate, for an encoder. */
import type { Buffer } from 'node:buffer'
import type { Frame } from '../../../container/frames.ts'
import type { Shown } from '../../../decode/terminal/screen.ts'
import type { Playhead } from '../../replay/playhead.ts'

/** Pictures a second. */
export const RATE = 10
/** Longest pause that is shown, in microseconds. */
const IDLE_LIMIT = 2e6
const PICTURE = 1e6 / RATE

/** A film's size and pictures. Encoders need even sides. */
export interface Film {
  width: number
  height: number
  /** Pixel format, by ffmpeg's name for it. */
  pixels: 'rgb24' | 'rgb0'
  /** Each picture is valid until the next one is requested. */
  pictures: AsyncGenerator<Buffer>
}

/** Redraws the picture after frames that change it, and closes the playhead at the end. */
export async function* picturesOf<T extends Shown>(
  head: Playhead<T>,
  draw: (shown: T) => Buffer,
  changes: (frame: Frame) => boolean = () => true,
): AsyncGenerator<Buffer> {
  const drawSettled = async () => {
    await head.screen.settle()
    return draw(head.screen)
  }
  try {
    let picture = await drawSettled()
    let isChanged = false
    /** Time in the video, in microseconds. */
    let shown = 0
    let now = 0
    for (let next = head.next; next; next = head.next) {
      now += Math.min(next.time - head.time, IDLE_LIMIT)
      while (shown + PICTURE <= now) {
        if (isChanged) picture = await drawSettled()
        isChanged = false
        shown += PICTURE
        yield picture
      }
      await head.step()
      isChanged ||= changes(next)
    }
    picture = await drawSettled()
    for (let rest = 0; rest < RATE; rest++) yield picture
  } finally {
    await head.close()
  }
}
