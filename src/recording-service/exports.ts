/** Exports of recordings for the API: the sealed container unchanged, or opened and converted. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { KEY_FILE_NAME } from '../../recordings/container/format/limits.ts'
import {
  type ExportChoice,
  type ExportFormat,
  isReplayed,
  NothingToShow,
} from '../../recordings/show/export/choices.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import { type Local, locally } from '../../recordings/storage/fetched.ts'
import { bytesOf, requireBytes } from '../../recordings/storage/source.ts'
import type { Id } from '../model/objects.ts'
import { type ExportStream, ExportThreads } from './exporting/threads.ts'
import type { RecordingService } from './service.ts'

export type RecordingFormat = 'container' | ExportFormat

/** This format requires a closed recording. */
export class StillRecording extends Error {
  constructor(session: Id) {
    super(`expected a closed recording of session ${session}, which still runs`)
    this.name = 'StillRecording'
  }
}

export interface RecordingExports {
  /**
   * Returns a stream of the session's recording in this format, or undefined if there is no recording, or
   * nothing to show. Throws RecordingError (`wrong_key`: sealed to others), StillRecording, GraphicSession,
   * FfmpegMissing, TooManyExports, BucketError. `gone` aborts when the client has left: some formats take
   * minutes until they begin.
   */
  open(
    session: Id,
    format: RecordingFormat,
    choice?: Omit<ExportChoice, 'format'>,
    gone?: AbortSignal,
  ): Promise<ExportStream | undefined>
  /** Stops the running exports. */
  close(): Promise<void>
}

/** The exports that the API streams. */
export function recordingExports(recordingService: RecordingService): RecordingExports {
  const threads = new ExportThreads()
  return {
    async open(session, format, choice = {}, gone = undefined) {
      const entry = await findRecording(recordingService.root, session)
      if (!entry || entry.state === 'empty') return undefined
      if (format === 'container') {
        await requireBytes(entry, recordingService.bucket)
        return Readable.from(bytesOf(entry, recordingService.bucket), { objectMode: false })
      }
      if (isReplayed(format) && entry.state === 'open') throw new StillRecording(session)
      const key = await recordingService.unwrap(await readFile(join(entry.directory, KEY_FILE_NAME)))
      let local: Local | undefined
      try {
        const stream = await threads.open(async (signal) => {
          local = await locally(entry, recordingService.bucket, signal)
          return { entry: local.entry, key, choice: { ...choice, format } }
        }, gone)
        stream.on('close', () => void local?.release())
        return stream
      } catch (error) {
        await local?.release()
        if (error instanceof NothingToShow) return undefined
        throw error
      }
    },
    close: () => threads.close(),
  }
}
