/** The formats of a recording's export, and what may be chosen, apart from the code that makes them. */
import type { VideoFormat } from './video/ffmpeg.ts'

export const EXPORT_FORMATS = [
  'cast',
  'cast3',
  'ttyrec',
  'txt',
  'json',
  'html',
  'png',
  'mp4',
  'webm',
] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]
/** Formats of a session that shows a desktop. */
export const GRAPHIC_FORMATS: readonly ExportFormat[] = ['png', 'mp4', 'webm', 'json', 'txt']

export interface ExportChoice {
  format: ExportFormat
  /** Absent for the main channel; JSON then contains all channels, and HTML always does. */
  channel?: number | 'all'
  /** For cast, ttyrec and txt: unfiltered bytes, with all their effects on a terminal. */
  raw?: boolean
  /** Moment of a PNG, in seconds since the recording began. Absent for the end. */
  at?: number
}

/** ffmpeg is needed and not installed. */
export class FfmpegMissing extends Error {
  constructor() {
    super('ffmpeg is not installed: on Debian, apt-get install ffmpeg')
    this.name = 'FfmpegMissing'
  }
}

/** The session shows a desktop, which this format cannot hold. */
export class GraphicSession extends Error {
  constructor() {
    super(`expected a form for a graphic session: ${GRAPHIC_FORMATS.join(', ')}`)
    this.name = 'GraphicSession'
  }
}

/** The recording has nothing to show in this format, or does not have this channel. */
export class NothingToShow extends Error {
  constructor(session: string, channel: number | 'all' | undefined) {
    const none = 'opened no channel: only json has something to show'
    super(`session ${session} ${channel === undefined ? none : `has no channel ${channel}`}`)
    this.name = 'NothingToShow'
  }
}

/** The format does not support the chosen options. */
export class BadChoice extends Error {
  override name = 'BadChoice'
}

/** Formats that can contain unfiltered bytes. */
const RAW_FORMATS: readonly ExportFormat[] = ['cast', 'cast3', 'ttyrec', 'txt']

/** Throws BadChoice if these options do not go together. */
export function requireChoice({ format, channel, raw }: ExportChoice): void {
  if (raw === true && !RAW_FORMATS.includes(format)) {
    throw new BadChoice(`expected one of ${RAW_FORMATS.join(', ')} as the form of raw output, not ${format}`)
  }
  if (raw === true && channel === 'all') {
    throw new BadChoice('expected one channel of which the output is wanted raw, not all of them')
  }
  if (channel === 'all' && isReplayed(format) && format !== 'html') {
    throw new BadChoice(`expected one channel: ${format} shows one`)
  }
}

/** Formats that are drawn, or shown with chapters: both need the index. */
export type ReplayedFormat = 'html' | 'png' | VideoFormat
export type StreamedFormat = Exclude<ExportFormat, ReplayedFormat>

export function isReplayed(format: ExportFormat): format is ReplayedFormat {
  return format === 'html' || format === 'png' || format === 'mp4' || format === 'webm'
}
