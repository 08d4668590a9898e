/**
 * asciicast v2 and v3 (https://docs.asciinema.org/manual/asciicast/v2/ and v3/) of one channel: what `asciinema play`
 * shows. The output is kept as it was, escape sequences and all: it is data here, and harmless until somebody plays
 * it.
 */

import type { Metadata } from '../format/header.ts'
import { type Command, FRAME, type Frame, UNREAD_LINE } from '../frames.ts'
import { channelOpenOf, framesOfChannel } from './channel.ts'
import { jsonLine, jsonOf, StreamDecoders, sizeOf } from './payload.ts'

/** A channel without a terminal has no size. */
const DEFAULT_SIZE = { columns: 80, rows: 24 }

/** v3 has times since the event before, and the exit status. */
export type CastVersion = 2 | 3

/** Lines of the .cast; `metadata` is the recording's header. */
export async function* exportCast(
  frames: AsyncIterable<Frame>,
  channel: number,
  metadata: Metadata,
  version: CastVersion = 2,
): AsyncGenerator<string> {
  const decoders = new StreamDecoders()
  let opened: number | undefined
  let last = 0
  // In microseconds, as sums of rounded seconds drift.
  let told = 0
  for await (const frame of framesOfChannel(frames, channel)) {
    if (opened === undefined) {
      opened = frame.time
      yield jsonLine(version === 2 ? header(frame, metadata) : headerOf3(frame, metadata))
    }
    last = frame.time - opened
    const event = eventOf(frame, decoders) ?? (version === 3 ? exitOf(frame) : undefined)
    if (!event) continue
    yield jsonLine([(version === 2 ? last : last - told) / 1e6, ...event])
    told = last
  }
  const rest = decoders.finish()
  if (rest !== '') yield jsonLine([(version === 2 ? last : last - told) / 1e6, 'o', rest])
}

function headerOf3(frame: Frame, metadata: Metadata): Record<string, unknown> {
  const { width: cols, height: rows, env, version: _, ...rest } = header(frame, metadata)
  const { TERM: type } = (env ?? {}) as { TERM?: string }
  return { version: 3, term: { cols, rows, ...(type !== undefined && { type }) }, ...rest }
}

function exitOf(frame: Frame): [string, string] | undefined {
  if (frame.type !== FRAME.exit) return undefined
  const { status } = (jsonOf(frame.payload) ?? {}) as { status?: unknown }
  return typeof status === 'number' ? ['x', String(status)] : undefined
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
      return ['m', command?.confidence === 'unread' ? UNREAD_LINE : String(command?.line ?? '')]
    }
    default:
      return undefined
  }
}
