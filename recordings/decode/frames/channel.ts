/** Which of a session's channels an export is about. */
import type { ChannelOpen, Frame } from '../../container/frames.ts'
import { FRAME } from '../../container/frames.ts'
import { type DesktopSize, MAX_DESKTOP_SIDE } from '../graphics/events.ts'
import { jsonOf, MAX_SIDE } from './payload.ts'

/** What an exporter wants to know of a `channelOpen`. */
export type Opened = Pick<ChannelOpen, 'command' | 'terminal' | 'desktop'> & { kind: string }

/** What a `channelOpen` says; what is malformed in it is left out. */
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

/** A terminal may say that it has no columns; whoever draws it needs some. */
function side(value: unknown, otherwise: number): number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= MAX_SIDE
    ? value
    : otherwise
}

/** Channels whose kind is kept: of a session with more, those that come later are counted only. */
const MAX_KEPT = 16 * 1024

/** One of a session's channels. */
export interface ChannelBrief {
  channel: number
  kind: string
  command?: string
  hasTerminal: boolean
  isGraphic: boolean
}

/** The channels of a session. */
export interface Survey {
  /** In the order in which they were opened. */
  channels: ChannelBrief[]
  /** How many there are. */
  count: number
}

/** Reads all frames for the channels that they open. */
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

/** The first channel with a terminal, else the first; undefined in a session without any. */
export function mainChannel({ channels }: Survey): ChannelBrief | undefined {
  return channels.find(({ hasTerminal }) => hasTerminal) ?? channels[0]
}

/** What an export shows of a session. */
export interface Shown {
  channel: number | 'all'
  /** Its place among the session's channels, from 1; absent where all are shown. */
  place?: number
  /** How many channels the session has. */
  count: number
}

/** What is shown and what is left out: `channel 5 (1 of 2)`. undefined: there is nothing to leave out. */
export function leftOut({ channel, place, count }: Shown): string | undefined {
  return channel === 'all' || count <= 1 ? undefined : `channel ${channel} (${place ?? '?'} of ${count})`
}

/** The frames of one channel, or of all. */
export async function* framesOfChannel(
  frames: AsyncIterable<Frame>,
  channel: number | 'all',
): AsyncGenerator<Frame> {
  for await (const frame of frames) if (channel === 'all' || frame.channel === channel) yield frame
}
