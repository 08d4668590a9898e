/** Recordings as the API hands them out: the sealed container as it is, or opened and converted. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { KEY_FILE_NAME } from '../../recordings/container/format/limits.ts'
import {
  type ExportChoice,
  type ExportFormat,
  isReplayed,
  NothingToShow,
} from '../../recordings/show/export/formats.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import { type Local, locally } from '../../recordings/storage/fetched.ts'
import { bytesOf, requireBytes } from '../../recordings/storage/source.ts'
import type { Id } from '../model/objects.ts'
import { type ExportStream, ExportThreads } from './exporting/threads.ts'
import type { RecordingService } from './service.ts'

export type RecordingFormat = 'container' | ExportFormat

/** This form is made of recordings that are closed. */
export class StillRecording extends Error {
  constructor(session: Id) {
    super(`expected a closed recording of session ${session}, which still runs`)
    this.name = 'StillRecording'
  }
}

export interface RecordingExports {
  /**
   * A stream of the session's recording in that form; undefined when there is none, or nothing in it to show. Throws
   * RecordingError (`wrong_key`: it is sealed to others), StillRecording, GraphicSession, FfmpegMissing,
   * TooManyExports, BucketError. `gone` says that nobody waits for it any more: some forms take minutes until they begin.
   */
  open(
    session: Id,
    format: RecordingFormat,
    choice?: Omit<ExportChoice, 'format'>,
    gone?: AbortSignal,
  ): Promise<ExportStream | undefined>
  /** Ends what is under way. */
  close(): Promise<void>
}

/** What the API streams. */
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
