/**
 * asciicast v2 (https://docs.asciinema.org/manual/asciicast/v2/) of one channel: what `asciinema play` shows. The
 * output is kept as it was, escape sequences and all: it is data here, and harmless until somebody plays it.
 */

import type { Metadata } from '../format/header.ts'
import { type Command, FRAME, type Frame } from '../frames.ts'
import { channelOpenOf, framesOfChannel } from './channel.ts'
import { jsonLine, jsonOf, StreamDecoders, sizeOf } from './payload.ts'

/** A channel without a terminal has no size. */
const DEFAULT_SIZE = { columns: 80, rows: 24 }

/** Lines of the .cast; `metadata` is the recording's header. */
export async function* exportCast(
  frames: AsyncIterable<Frame>,
  channel: number,
  metadata: Metadata,
): AsyncGenerator<string> {
  const decoders = new StreamDecoders()
  let opened: number | undefined
  let last = 0
  for await (const frame of framesOfChannel(frames, channel)) {
    if (opened === undefined) {
      opened = frame.time
      yield jsonLine(header(frame, metadata))
    }
    last = (frame.time - opened) / 1e6
    const event = eventOf(frame, decoders)
    if (event) yield jsonLine([last, ...event])
  }
  const rest = decoders.finish()
  if (rest !== '') yield jsonLine([last, 'o', rest])
}

function header(frame: Frame, metadata: Metadata): Record<string, unknown> {
  const open = frame.type === FRAME.channelOpen ? channelOpenOf(frame.payload) : undefined
  const begin = typeof metadata['begin'] === 'string' ? Date.parse(metadata['begin']) : Number.NaN
  const { columns, rows } = open?.terminal ?? DEFAULT_SIZE
  return {
    version: 2,
    width: columns,
    height: rows,
    ...(Number.isFinite(begin) && { timestamp: Math.floor((begin + frame.time / 1000) / 1000) }),
    ...(open?.command !== undefined && { command: open.command }),
    title: `session ${metadata['session']}`,
    ...(open?.terminal && { env: { TERM: open.terminal.type } }),
  }
}

function eventOf(frame: Frame, decoders: StreamDecoders): [string, string] | undefined {
  switch (frame.type) {
    case FRAME.output:
    case FRAME.errorOutput:
      return ['o', decoders.decode(frame.channel, frame.type, frame.payload)]
    case FRAME.input:
      return ['i', decoders.decode(frame.channel, frame.type, frame.payload)]
    case FRAME.resize: {
      const size = sizeOf(frame.payload)
      return size && ['r', `${size.columns}x${size.rows}`]
    }
    case FRAME.command: {
      const command = jsonOf(frame.payload) as Partial<Command> | undefined
      return ['m', String(command?.line ?? '')]
    }
    default:
      return undefined
  }
}
