/** The formats of a recording's export. */
import { Readable } from 'node:stream'
import { encodeColourPng, encodePng, titled } from '../../../src/drawing/png.ts'
import { OpenedRecording } from '../../container/opened.ts'
import { leftOut, mainChannel, type Shown, type Survey, surveyOf } from '../../decode/frames/channel.ts'
import { exportBytes, exportText } from '../../decode/text/text.ts'
import type { CatalogEntry } from '../../storage/catalog-entry.ts'
import type { Channel } from '../index/directory.ts'
import { PALETTE } from '../picture/palette.ts'
import { canvasFor, drawTerminal } from '../picture/terminal.ts'
import type { Desktop } from '../replay/desktop.ts'
import type { Playhead } from '../replay/playhead.ts'
import { Replay } from '../replay/replay.ts'
import { exportCast } from './cast.ts'
import { exportHtml } from './html/page.ts'
import { exportJson } from './json.ts'
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

/** An export's stream, with the part of the session that it shows. */
export type Exported = Readable & { shown: Shown }

/**
 * Opens the export as a stream, which may fail later: the part before a fault in the recording is sent by
 * then, except in formats that need an index. Throws BadChoice, FfmpegMissing, GraphicSession, NothingToShow,
 * RecordingError.
 */
export async function openExport(
  entry: CatalogEntry,
  key: Uint8Array,
  choice: ExportChoice,
): Promise<Exported> {
  requireChoice(choice)
  const { pieces, shown } = isReplayed(choice.format)
    ? await replayed(entry, key, choice, choice.format)
    : await streamed(entry, key, choice, choice.format)
  return Object.assign(Readable.from(pieces, { objectMode: false }), { shown })
}

interface Pieces {
  pieces: AsyncIterable<string | Uint8Array>
  shown: Shown
}

/** Formats that are drawn, or shown with chapters: both need the index. */
type ReplayedFormat = 'html' | 'png' | VideoFormat
type StreamedFormat = Exclude<ExportFormat, ReplayedFormat>

export function isReplayed(format: ExportFormat): format is ReplayedFormat {
  return format === 'html' || format === 'png' || format === 'mp4' || format === 'webm'
}

async function streamed(
  entry: CatalogEntry,
  key: Uint8Array,
  choice: ExportChoice,
  format: StreamedFormat,
): Promise<Pieces> {
  const recording = await OpenedRecording.open(entry.directory, key)
  try {
    const { pieces, shown } = await passOver(recording, choice, format)
    return { shown, pieces: closing(pieces, recording) }
  } catch (error) {
    await recording.close()
    throw error
  }
}

async function passOver(
  recording: OpenedRecording,
  { channel: chosen, raw: isRaw = false }: ExportChoice,
  format: StreamedFormat,
): Promise<Pieces> {
  const { session, metadata } = recording.header
  const survey = await surveyOf(recording.reader().frames())
  const shown = shownOf(session, survey, chosen ?? (format === 'json' ? 'all' : undefined))
  const isGraphic = survey.channels.some(
    (one) => one.isGraphic && (shown.channel === 'all' || shown.channel === one.channel),
  )
  if (!GRAPHIC_FORMATS.includes(format) && isGraphic) throw new GraphicSession()
  const frames = recording.reader().frames()
  const cast = { version: format === 'cast3' ? 3 : 2, isRaw } as const
  if (format === 'json') return { shown, pieces: exportJson(frames, shown.channel) }
  if (format === 'txt')
    return { shown, pieces: isRaw ? exportBytes(frames, shown) : exportText(frames, shown) }
  if (format === 'ttyrec') return { shown, pieces: exportTtyrec(frames, shown, metadata, { isRaw }) }
  return { shown, pieces: exportCast(frames, shown, metadata, cast) }
}

function shownOf(session: string, survey: Survey, chosen: number | 'all' | undefined): Shown {
  const { channels, count } = survey
  if (chosen === 'all') return { channel: 'all', count }
  const channel = chosen ?? mainChannel(survey)?.channel
  const place = channels.findIndex((one) => one.channel === channel)
  if (channel === undefined || place < 0) throw new NothingToShow(session, chosen)
  return { channel, place: place + 1, count }
}

async function replayed(
  entry: CatalogEntry,
  key: Uint8Array,
  { channel: chosen, at }: ExportChoice,
  format: ReplayedFormat,
): Promise<Pieces> {
  const isVideo = format === 'mp4' || format === 'webm'
  const ffmpeg = isVideo ? findFfmpeg() : undefined
  if (isVideo && ffmpeg === undefined) throw new FfmpegMissing()
  const replay = await Replay.open(entry, key)
  const { channels } = replay.directory
  const isChosen = chosen !== undefined && chosen !== 'all'
  const channel = isChosen ? channels.find((one) => one.channel === chosen) : replay.mainChannel
  if (!channel) {
    await replay.close()
    throw new NothingToShow(entry.session, isChosen ? chosen : undefined)
  }
  const count = channels.length
  const place = channels.indexOf(channel)
  const one: Shown = { channel: channel.channel, place: place + 1, count }
  if (channel.desktop) {
    return { shown: one, pieces: await graphic(replay, channel, format, { at, ffmpeg, shown: one }) }
  }
  if (format === 'html') {
    return { shown: { channel: 'all', count }, pieces: closing(exportHtml(replay, place), replay) }
  }
  if (format === 'png') return { shown: one, pieces: closing(exportPng(replay, channel, at, one), replay) }
  const film = await terminalFilm(replay, channel)
  return { shown: one, pieces: closing(exportVideo(film, format, ffmpeg!, titleOf(replay, one)), replay) }
}

/** Returns the title inside a picture or a video. */
function titleOf({ header }: Replay, shown: Shown): string {
  const lacks = leftOut(shown)
  return `session ${header.session}${lacks === undefined ? '' : `, ${lacks}`}`
}

async function graphic(
  replay: Replay,
  channel: Channel,
  format: ReplayedFormat,
  { at, ffmpeg, shown }: { at: number | undefined; ffmpeg: string | undefined; shown: Shown },
): Promise<AsyncIterable<Uint8Array>> {
  try {
    if (format === 'html') throw new GraphicSession()
    const time = format !== 'png' ? channel.opened : at === undefined ? replay.directory.duration : at * 1e6
    const head = await replay.desktopAt(channel, time)
    if (!head) throw new NothingToShow(replay.header.session, channel.channel)
    const title = titleOf(replay, shown)
    if (format === 'png') return closing(exportDesktop(head, title), replay)
    return closing(exportVideo(await desktopFilm(replay, channel, head), format, ffmpeg!, title), replay)
  } catch (error) {
    await replay.close()
    throw error
  }
}

async function* exportDesktop(head: Playhead<Desktop>, title: string): AsyncGenerator<Uint8Array> {
  const png = titled(encodeColourPng(head.screen.picture), title)
  await head.close()
  yield png
}

async function* exportPng(
  replay: Replay,
  channel: Channel,
  at: number | undefined,
  shown: Shown,
): AsyncGenerator<Uint8Array> {
  const head = await replay.at(channel, at === undefined ? replay.directory.duration : at * 1e6)
  const { emulator } = head.screen
  const canvas = canvasFor(emulator.size)
  drawTerminal(canvas, emulator)
  await head.close()
  yield titled(encodePng(canvas, PALETTE), titleOf(replay, shown))
}

async function* closing<T>(
  pieces: AsyncIterable<T>,
  source: Pick<Replay | OpenedRecording, 'close'>,
): AsyncGenerator<T> {
  try {
    yield* pieces
  } finally {
    await source.close()
  }
}
