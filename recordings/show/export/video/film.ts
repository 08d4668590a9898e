/** A channel as pictures at an even pace, for an encoder. */
import type { Buffer } from 'node:buffer'
import type { Frame } from '../../../container/frames.ts'
import type { Shown } from '../../../decode/terminal/screen.ts'
import type { Playhead } from '../../replay/playhead.ts'

/** Pictures a second. */
export const RATE = 10
/** Microseconds of nothing that are shown at most. */
const IDLE_LIMIT = 2e6
const PICTURE = 1e6 / RATE

/** Encoders want even sides. */
export interface Film {
  width: number
  height: number
  /** How pixels look, as ffmpeg calls it. */
  pixels: 'rgb24' | 'rgb0'
  /** Each is to be used before the next one is asked for. */
  pictures: AsyncGenerator<Buffer>
}

/** Drawn anew after frames that change something; the playhead is closed at the end. */
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
    /** Of the video, in microseconds. */
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
