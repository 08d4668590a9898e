/** Which of a session's channels an export is about. */
import type { ChannelOpen, Frame } from '../frames.ts'
import { FRAME } from '../frames.ts'
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

/** The first channel with a terminal, else the first; undefined in a session without any. */
export async function firstChannel(frames: AsyncIterable<Frame>): Promise<number | undefined> {
  let first: number | undefined
  for await (const frame of frames) {
    if (frame.type !== FRAME.channelOpen) continue
    if (channelOpenOf(frame.payload).terminal) return frame.channel
    first ??= frame.channel
  }
  return first
}

/** Whether the channel shows a desktop. */
export async function isGraphic(frames: AsyncIterable<Frame>, channel: number): Promise<boolean> {
  for await (const frame of frames) {
    if (frame.type !== FRAME.channelOpen || frame.channel !== channel) continue
    return channelOpenOf(frame.payload).desktop !== undefined
  }
  return false
}

/** The frames of one channel. */
export async function* framesOfChannel(frames: AsyncIterable<Frame>, channel: number): AsyncGenerator<Frame> {
  for await (const frame of frames) if (frame.channel === channel) yield frame
}
