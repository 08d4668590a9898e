/** Replays a channel in the current terminal, at its original pace. */

import { FRAME, type Frame } from '../container/frames.ts'
import { describeFrame } from '../decode/describe.ts'
import { channelOpenOf, framesOfChannel } from '../decode/frames/channel.ts'
import { StreamDecoders } from '../decode/frames/payload.ts'
import { TERMINAL_RESET, TerminalFilter } from '../decode/terminal/filter.ts'

export interface PlayOptions {
  channel: number
  /** Resolves when the terminal has accepted the text. */
  write: (text: string) => Promise<void>
  /** Waits for this many milliseconds; resolves early when the replay is stopped. */
  sleep: (milliseconds: number) => Promise<void>
  /** 2 is twice as fast. */
  speed: number
  /** Longest pause that is replayed, in seconds. Undefined to keep all pauses. */
  idleLimit?: number
  /** Stops the replay. */
  signal?: AbortSignal
}

/** Shows the filtered output (TerminalFilter), and resets the terminal at the end. */
export async function play(frames: AsyncIterable<Frame>, options: PlayOptions): Promise<void> {
  const decoders = new StreamDecoders()
  const filter = new TerminalFilter()
  let hasTerminal = false
  let before: number | undefined
  try {
    for await (const frame of framesOfChannel(frames, options.channel)) {
      if (frame.type === FRAME.channelOpen) hasTerminal = channelOpenOf(frame.payload).terminal !== undefined
      await options.sleep(pause(frame.time - (before ?? frame.time), options))
      if (options.signal?.aborted) return
      before = frame.time
      const text = shown(frame, decoders, filter, hasTerminal)
      if (text !== '') await options.write(text)
    }
  } finally {
    await options.write(hasTerminal ? `${TERMINAL_RESET}\r\n` : '\x1b[m')
  }
}

function pause(microseconds: number, { speed, idleLimit }: PlayOptions): number {
  const seconds = microseconds / 1e6
  return (Math.min(seconds, idleLimit ?? seconds) / speed) * 1000
}

function shown(frame: Frame, decoders: StreamDecoders, filter: TerminalFilter, hasTerminal: boolean): string {
  switch (frame.type) {
    case FRAME.output:
    case FRAME.errorOutput: {
      const text = filter.push(decoders.decode(frame.channel, frame.type, frame.payload))
      // Without a terminal at the other end, LF was not turned into CR LF; this terminal may be in raw mode
      // or not.
      return hasTerminal ? text : text.replaceAll('\n', '\r\n')
    }
    case FRAME.file:
    case FRAME.denied:
    case FRAME.unrecorded:
      return `${describeFrame(frame)}\r\n`
    default:
      return ''
  }
}
