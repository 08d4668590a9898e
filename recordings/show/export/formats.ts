/** Makes exports of a recording. */
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
import {
  type ExportChoice,
  FfmpegMissing,
  GRAPHIC_FORMATS,
  GraphicSession,
  isReplayed,
  NothingToShow,
  type ReplayedFormat,
  requireChoice,
  type StreamedFormat,
} from './choices.ts'
import { exportHtml } from './html/page.ts'
import { exportJson } from './json.ts'
import { exportTtyrec } from './ttyrec.ts'
import { desktopFilm } from './video/desktop.ts'
import { exportVideo, findFfmpeg } from './video/ffmpeg.ts'
import { terminalFilm } from './video/terminal.ts'

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
