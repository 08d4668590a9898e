/** Selects the channels of a session for an export. */
import type { ChannelOpen, Frame } from '../../container/frames.ts'
import { FRAME } from '../../container/frames.ts'
import { type DesktopSize, MAX_DESKTOP_SIDE } from '../graphics/events.ts'
import { jsonOf, MAX_SIDE } from './payload.ts'

/** The fields of a `channelOpen` that exporters use. */
export type Opened = Pick<ChannelOpen, 'command' | 'terminal' | 'desktop'> & { kind: string }

/** Parses a `channelOpen`; malformed fields are left out. */
export function channelOpenOf(payload: Uint8Array): Opened {
  const { kind, command, terminal, desktop } = fields(jsonOf(payload))
  const { type, columns, rows } = fields(terminal)
  const size = { columns: side(columns, 80), rows: side(rows, 24) }
  const pixels = desktopOf(fields(desktop))
  return {
    kind: typeof kind === 'string' ? kind : '',
    ...(typeof command === 'string' && { command }),
    ...(typeof type === 'string' && { terminal: { type, ...size } }),
    ...(pixels && { desktop: pixels }),
  }
}

function fields(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function desktopOf({ width, height }: Record<string, unknown>): DesktopSize | undefined {
  return isDesktopSide(width) && isDesktopSide(height) ? { width, height } : undefined
}

function isDesktopSide(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= MAX_DESKTOP_SIDE
}

/** A terminal may claim to have no columns, but drawing needs some. */
function side(value: unknown, otherwise: number): number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= MAX_SIDE
    ? value
    : otherwise
}

/** Channels whose kind is kept; later channels of a session are only counted. */
const MAX_KEPT = 16 * 1024

/** One of a session's channels. */
export interface ChannelBrief {
  channel: number
  kind: string
  command?: string
  hasTerminal: boolean
  isGraphic: boolean
}

/** A survey of a session's channels. */
export interface Survey {
  /** In the order in which the channels were opened. */
  channels: ChannelBrief[]
  /** Number of channels, including those that are only counted. */
  count: number
}

/** Reads all frames and collects the channels that they open. */
export async function surveyOf(frames: AsyncIterable<Frame>): Promise<Survey> {
  const channels: ChannelBrief[] = []
  let count = 0
  for await (const { type, channel, payload } of frames) {
    if (type !== FRAME.channelOpen) continue
    count++
    if (channels.length >= MAX_KEPT) continue
    const { kind, command, terminal, desktop } = channelOpenOf(payload)
    channels.push({
      channel,
      kind,
      ...(command !== undefined && { command }),
      hasTerminal: terminal !== undefined,
      isGraphic: desktop !== undefined,
    })
  }
  return { channels, count }
}

/**
 * Returns the first channel with a terminal, else the first channel, or undefined if the session has none.
 */
export function mainChannel({ channels }: Survey): ChannelBrief | undefined {
  return channels.find(({ hasTerminal }) => hasTerminal) ?? channels[0]
}

/** The part of a session that an export shows. */
export interface Shown {
  channel: number | 'all'
  /** Place among the session's channels, from 1. Absent if all are shown. */
  place?: number
  /** Number of the session's channels. */
  count: number
}

/** Describes the shown part: `channel 5 (1 of 2)`. Returns undefined if nothing is left out. */
export function leftOut({ channel, place, count }: Shown): string | undefined {
  return channel === 'all' || count <= 1 ? undefined : `channel ${channel} (${place ?? '?'} of ${count})`
}

/** Yields the frames of one channel, or of all. */
export async function* framesOfChannel(
  frames: AsyncIterable<Frame>,
  channel: number | 'all',
): AsyncGenerator<Frame> {
  for await (const frame of frames) if (channel === 'all' || frame.channel === channel) yield frame
}
