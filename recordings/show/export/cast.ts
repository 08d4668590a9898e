/**
 * asciicast v2 and v3 (https://docs.asciinema.org/manual/asciicast/v2/ and v3/) of one channel, or of all in
 * the order of their output, for `asciinema play`. It plays the file in the viewer's terminal, so sequences
 * that do more than draw are left out, unless the raw bytes are requested.
 */

import type { Metadata } from '../../container/format/header.ts'
import { type Command, FRAME, type Frame, UNREAD_LINE } from '../../container/frames.ts'
import { channelOpenOf, framesOfChannel, leftOut, type Shown } from '../../decode/frames/channel.ts'
import { jsonLine, jsonOf, sizeOf } from '../../decode/frames/payload.ts'
import { harmless } from '../../decode/terminal/filter.ts'
import { ChannelOutput } from './output.ts'

/** Size of a channel without a terminal. */
const DEFAULT_SIZE = { columns: 80, rows: 24 }

/** v3 stores times since the previous event, and the exit status. */
export type CastVersion = 2 | 3

export interface CastOptions {
  version?: CastVersion
  /** Set to filter nothing. */
  isRaw?: boolean
}

/** Yields lines of the .cast; `metadata` is the recording's header. */
export async function* exportCast(
  frames: AsyncIterable<Frame>,
  shown: Shown,
  metadata: Metadata,
  { version = 2, isRaw = false }: CastOptions = {},
): AsyncGenerator<string> {
  const output = new ChannelOutput({ isRaw, isNamed: shown.channel === 'all' })
  let opened: number | undefined
  let last = 0
  // In microseconds, since sums of rounded seconds drift.
  let told = 0
  for await (const frame of framesOfChannel(frames, shown.channel)) {
    if (opened === undefined) {
      opened = frame.time
      const first = header(frame, metadata, shown)
      yield jsonLine(version === 2 ? first : headerOf3(first))
    }
    last = frame.time - opened
    output.see(frame)
    const event = eventOf(frame, output, isRaw) ?? (version === 3 ? exitOf(frame) : undefined)
    if (!event) continue
    yield jsonLine([(version === 2 ? last : last - told) / 1e6, ...event])
    told = last
  }
  const rest = output.finish()
  if (rest !== '') yield jsonLine([(version === 2 ? last : last - told) / 1e6, 'o', rest])
}

function headerOf3({
  width: cols,
  height: rows,
  env,
  version: _,
  ...rest
}: Record<string, unknown>): Record<string, unknown> {
  const { TERM: type } = (env ?? {}) as { TERM?: string }
  return { version: 3, term: { cols, rows, ...(type !== undefined && { type }) }, ...rest }
}

function exitOf(frame: Frame): [string, string] | undefined {
  if (frame.type !== FRAME.exit) return undefined
  const { status } = (jsonOf(frame.payload) ?? {}) as { status?: unknown }
  return typeof status === 'number' ? ['x', String(status)] : undefined
}

function header(frame: Frame, metadata: Metadata, shown: Shown): Record<string, unknown> {
  const open = frame.type === FRAME.channelOpen ? channelOpenOf(frame.payload) : undefined
  const begin = typeof metadata['begin'] === 'string' ? Date.parse(metadata['begin']) : Number.NaN
  const { columns, rows } = open?.terminal ?? DEFAULT_SIZE
  const lacks = shown.channel === 'all' ? `all ${shown.count} channels` : leftOut(shown)
  return {
    version: 2,
    width: columns,
    height: rows,
    ...(Number.isFinite(begin) && { timestamp: Math.floor((begin + frame.time / 1000) / 1000) }),
    ...(open?.command !== undefined && { command: harmless(open.command) }),
    title: [`session ${metadata['session']}`, ...(lacks === undefined ? [] : [lacks])].join(', '),
    ...(open?.terminal && { env: { TERM: harmless(open.terminal.type) } }),
  }
}

function eventOf(frame: Frame, output: ChannelOutput, isRaw: boolean): [string, string] | undefined {
  switch (frame.type) {
    case FRAME.output:
    case FRAME.errorOutput:
      return ['o', output.shown(frame)]
    case FRAME.input:
      return ['i', output.typed(frame)]
    case FRAME.resize: {
      const size = sizeOf(frame.payload)
      return size && ['r', `${size.columns}x${size.rows}`]
    }
    case FRAME.command: {
      const command = jsonOf(frame.payload) as Partial<Command> | undefined
      const line = command?.confidence === 'unread' ? UNREAD_LINE : String(command?.line ?? '')
      return ['m', isRaw ? line : harmless(line)]
    }
    default:
      return undefined
  }
}
