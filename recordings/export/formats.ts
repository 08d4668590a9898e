/** Every form that a recording can be had in. */
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { encodeColourPng, encodePng } from '../../src/drawing/png.ts'
import type { CatalogEntry } from '../catalog.ts'
import { FILE_NAME } from '../format/limits.ts'
import type { Channel } from '../index/directory.ts'
import { PALETTE } from '../picture/palette.ts'
import { canvasFor, drawTerminal } from '../picture/terminal.ts'
import { RecordingReader } from '../reader.ts'
import type { Desktop } from '../replay/desktop.ts'
import type { Playhead } from '../replay/playhead.ts'
import { Replay } from '../replay/replay.ts'
import { readPieces } from '../session-file.ts'
import { exportCast } from './cast.ts'
import { firstChannel, isGraphic } from './channel.ts'
import { exportHtml } from './html/page.ts'
import { exportJson } from './json.ts'
import { exportText } from './text.ts'
import { exportTtyrec } from './ttyrec.ts'
import { desktopFilm } from './video/desktop.ts'
import { exportVideo, findFfmpeg, type VideoFormat } from './video/ffmpeg.ts'
import { terminalFilm } from './video/terminal.ts'

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
/** Those of a session that shows a desktop. */
export const GRAPHIC_FORMATS: readonly ExportFormat[] = ['png', 'mp4', 'webm', 'json', 'txt']

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

/** The session shows a desktop, which this form cannot hold. */
export class GraphicSession extends Error {
  constructor() {
    super(`expected a form for a graphic session: ${GRAPHIC_FORMATS.join(', ')}`)
    this.name = 'GraphicSession'
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
 * the forms that need an index. Throws FfmpegMissing, GraphicSession, NothingToShow, RecordingError.
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
  if (!GRAPHIC_FORMATS.includes(format) && (await isGraphic((await open()).frames(), channel))) {
    throw new GraphicSession()
  }
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
  if (channel.desktop) return await graphic(replay, channel, format, { at, ffmpeg })
  if (format === 'html') return closing(exportHtml(replay, channels.indexOf(channel)), replay)
  if (format === 'png') return closing(exportPng(replay, channel, at), replay)
  return closing(exportVideo(await terminalFilm(replay, channel), format, ffmpeg!), replay)
}

async function graphic(
  replay: Replay,
  channel: Channel,
  format: ReplayedFormat,
  { at, ffmpeg }: { at: number | undefined; ffmpeg: string | undefined },
): Promise<AsyncIterable<Uint8Array>> {
  try {
    if (format === 'html') throw new GraphicSession()
    const time = format !== 'png' ? channel.opened : at === undefined ? replay.directory.duration : at * 1e6
    const head = await replay.desktopAt(channel, time)
    if (!head) throw new NothingToShow(replay.header.session, channel.channel)
    if (format === 'png') return closing(exportDesktop(head), replay)
    return closing(exportVideo(await desktopFilm(replay, channel, head), format, ffmpeg!), replay)
  } catch (error) {
    await replay.close()
    throw error
  }
}

async function* exportDesktop(head: Playhead<Desktop>): AsyncGenerator<Uint8Array> {
  const png = encodeColourPng(head.screen.picture)
  await head.close()
  yield png
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
