/** Where in a channel's output a text stands. */

import { FRAME, type Frame } from '../../container/frames.ts'
import { StreamDecoders } from '../../decode/frames/payload.ts'
import { Transcript } from '../../decode/text/text.ts'

/** Finds of one search; the rest is left out. */
const MAX_FINDS = 10_000

/**
 * The times, in microseconds, at which a line of the output came to hold `text`, without regard to case. A line is
 * found once, however often it is drawn over while it holds it.
 */
export async function findOutput(frames: AsyncIterable<Frame>, text: string): Promise<number[]> {
  const decoders = new StreamDecoders()
  const page = new Transcript()
  const wanted = text.toLowerCase()
  const finds: number[] = []
  let wasInLine = false
  for await (const frame of frames) {
    if (frame.type !== FRAME.output && frame.type !== FRAME.errorOutput) continue
    page.push(decoders.decode(frame.channel, frame.type, frame.payload))
    const done = page.take().toLowerCase()
    const isInLine = page.current.toLowerCase().includes(wanted)
    // What is done may be the line in which it was found before.
    const first = done.indexOf('\n')
    const isInDone = done.includes(wanted, wasInLine && first >= 0 ? first : 0)
    if (isInDone || (isInLine && (!wasInLine || first >= 0))) finds.push(frame.time)
    wasInLine = isInLine
    if (finds.length === MAX_FINDS) break
  }
  return finds
}
