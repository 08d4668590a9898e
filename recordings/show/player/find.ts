/** Finds a text in a channel's output. */

import { FRAME, type Frame } from '../../container/frames.ts'
import { StreamDecoders } from '../../decode/frames/payload.ts'
import { Transcript } from '../../decode/text/text.ts'

/** Limit of one search's finds; the rest is left out. */
const MAX_FINDS = 10_000

/**
 * Returns the times, in microseconds, at which a line of the output began to contain `text`, regardless of
 * case. A line counts once, however often it is redrawn while it contains the text.
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
    // The finished line may be the one in which the text was found before.
    const first = done.indexOf('\n')
    const isInDone = done.includes(wanted, wasInLine && first >= 0 ? first : 0)
    if (isInDone || (isInLine && (!wasInLine || first >= 0))) finds.push(frame.time)
    wasInLine = isInLine
    if (finds.length === MAX_FINDS) break
  }
  return finds
}
