/** Exports every frame of one channel, or of all, as a line of JSON, except frames with pixels. */
import { Buffer, isUtf8 } from 'node:buffer'
import { FRAME, type Frame, isGraphics, isStream } from '../../container/frames.ts'
import { fieldsOf, frameName } from '../../decode/describe.ts'
import { framesOfChannel } from '../../decode/frames/channel.ts'
import { jsonLine, StreamDecoders } from '../../decode/frames/payload.ts'

/**
 * Yields lines `{"time": seconds, "channel": n, "type": name, …}`: a structured frame's fields as `data`, a
 * stream's piece as `text`. `base64` carries the bytes if the text alone would not restore them.
 */
export async function* exportJson(
  frames: AsyncIterable<Frame>,
  chosen: number | 'all' = 'all',
): AsyncGenerator<string> {
  const decoders = new StreamDecoders()
  for await (const frame of framesOfChannel(frames, chosen)) {
    if (isGraphics(frame.type)) continue
    const { channel } = frame
    yield jsonLine({
      time: frame.time / 1e6,
      channel,
      type: frameName(frame.type),
      ...contentOf(frame, decoders),
    })
    if (frame.type === FRAME.channelClose) decoders.close(channel)
  }
}

function contentOf(frame: Frame, decoders: StreamDecoders): Record<string, unknown> {
  const base64 = () => Buffer.from(frame.payload).toString('base64')
  if (isStream(frame.type)) {
    const text = decoders.decode(frame.channel, frame.type, frame.payload)
    return isUtf8(frame.payload) ? { text } : { text, base64: base64() }
  }
  const data = fieldsOf(frame)
  return data ? { data } : { base64: base64() }
}
