/** Every form that a recording can be had in. */
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { encodePng } from '../../src/drawing/png.ts'
import type { CatalogEntry } from '../catalog.ts'
import { FILE_NAME } from '../format/limits.ts'
import type { Channel } from '../index/directory.ts'
import { PALETTE } from '../picture/palette.ts'
import { canvasFor, drawTerminal } from '../picture/terminal.ts'
import { RecordingReader } from '../reader.ts'
import { Replay } from '../replay/replay.ts'
import { readPieces } from '../session-file.ts'
import { exportCast } from './cast.ts'
import { firstChannel } from './channel.ts'
import { exportHtml } from './html/page.ts'
import { exportJson } from './json.ts'
import { exportText } from './text.ts'
import { exportTtyrec } from './ttyrec.ts'
import { exportVideo, findFfmpeg, type VideoFormat } from './video/ffmpeg.ts'

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

export interface ExportChoice {
  format: ExportFormat
  /** Absent: the one that one most likely wants to see. JSON and HTML have all of them. */
  channel?: number
  /** The moment of a PNG, in seconds since the recording began; absent: the end. */
  at?: number
}

/** ffmpeg is wanted and not installed. */
export class FfmpegMissing extends Error {
  constructor() {
    super('ffmpeg is not installed: on Debian, apt-get install ffmpeg')
    this.name = 'FfmpegMissing'
  }
}

/** The recording has nothing to show in that form, or not that channel. */
export class NothingToShow extends Error {
  constructor(session: string, channel: number | undefined) {
    const none = 'opened no channel: only json has something to show'
    super(`session ${session} ${channel === undefined ? none : `has no channel ${channel}`}`)
    this.name = 'NothingToShow'
  }
}

/**
 * The export as a stream, which may fail later: what comes before a fault in the recording is given by then, but for
 * the forms that need an index. Throws FfmpegMissing, NothingToShow, RecordingError.
 */
export async function openExport(
  entry: CatalogEntry,
  key: Uint8Array,
  choice: ExportChoice,
): Promise<Readable> {
  const pieces = isReplayed(choice.format)
    ? await replayed(entry, key, choice, choice.format)
    : await streamed(entry, key, choice, choice.format)
  return Readable.from(pieces, { objectMode: false })
}

/** Drawn, or shown by chapters: by way of the index. */
type ReplayedFormat = 'html' | 'png' | VideoFormat

export function isReplayed(format: ExportFormat): format is ReplayedFormat {
  return format === 'html' || format === 'png' || format === 'mp4' || format === 'webm'
}

async function streamed(
  entry: CatalogEntry,
  key: Uint8Array,
  { channel: chosen }: ExportChoice,
  format: Exclude<ExportFormat, ReplayedFormat>,
): Promise<AsyncIterable<string | Uint8Array>> {
  const open = () => RecordingReader.open(readPieces(join(entry.directory, FILE_NAME)), key)
  if (format === 'json') return exportJson((await open()).frames())
  const channel = chosen ?? (await firstChannel((await open()).frames()))
  if (channel === undefined) throw new NothingToShow(entry.session, undefined)
  const reader = await open()
  const { metadata } = reader.header
  if (format === 'txt') return exportText(reader.frames(), channel)
  if (format === 'ttyrec') return exportTtyrec(reader.frames(), channel, metadata)
  return exportCast(reader.frames(), channel, metadata, format === 'cast' ? 2 : 3)
}

async function replayed(
  entry: CatalogEntry,
  key: Uint8Array,
  { channel: chosen, at }: ExportChoice,
  format: ReplayedFormat,
): Promise<AsyncIterable<string | Uint8Array>> {
  const isVideo = format === 'mp4' || format === 'webm'
  const ffmpeg = isVideo ? findFfmpeg() : undefined
  if (isVideo && ffmpeg === undefined) throw new FfmpegMissing()
  const replay = await Replay.open(entry, key)
  const { channels } = replay.directory
  const channel = chosen === undefined ? replay.mainChannel : channels.find((one) => one.channel === chosen)
  if (!channel) {
    await replay.close()
    throw new NothingToShow(entry.session, chosen)
  }
  if (format === 'html') return closing(exportHtml(replay, channels.indexOf(channel)), replay)
  if (format === 'png') return closing(exportPng(replay, channel, at), replay)
  return closing(exportVideo(replay, channel, format, ffmpeg!), replay)
}

async function* exportPng(
  replay: Replay,
  channel: Channel,
  at: number | undefined,
): AsyncGenerator<Uint8Array> {
  const head = await replay.at(channel, at === undefined ? replay.directory.duration : at * 1e6)
  const { emulator } = head.screen
  const canvas = canvasFor(emulator.size)
  drawTerminal(canvas, emulator)
  await head.close()
  yield encodePng(canvas, PALETTE)
}

async function* closing<T>(pieces: AsyncIterable<T>, replay: Replay): AsyncGenerator<T> {
  try {
    yield* pieces
  } finally {
    await replay.close()
  }
}
