/** Recordings as the API hands them out: the sealed container as it is, or opened and converted. */
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { type CatalogEntry, findRecording } from '../../recordings/catalog.ts'
import { exportCast } from '../../recordings/export/cast.ts'
import { firstChannel } from '../../recordings/export/channel.ts'
import { exportJson } from '../../recordings/export/json.ts'
import { exportText } from '../../recordings/export/text.ts'
import { FILE_NAME, KEY_FILE_NAME } from '../../recordings/format/limits.ts'
import { unwrapKey } from '../../recordings/keys.ts'
import { RecordingReader } from '../../recordings/reader.ts'
import type { Id } from '../model/objects.ts'
import type { RecordingKeeper } from './keeper.ts'

export type RecordingFormat = 'container' | 'cast' | 'txt' | 'json'

export interface RecordingExports {
  /** A stream of the session's recording in that form; undefined when there is none. */
  open(session: Id, format: RecordingFormat): Promise<Readable | undefined>
}

/** What the API streams; undefined where there is no recording, or nothing in it to show in that form. */
export function recordingExports(keeper: RecordingKeeper): RecordingExports {
  return {
    async open(session, format) {
      const entry = await findRecording(keeper.root, session)
      if (!entry || entry.state === 'empty') return undefined
      if (format === 'container') return createReadStream(join(entry.directory, FILE_NAME))
      if (format === 'json') return Readable.from(exportJson((await reader(keeper, entry)).frames()))
      const channel = await firstChannel((await reader(keeper, entry)).frames())
      if (channel === undefined) return undefined
      const opened = await reader(keeper, entry)
      return Readable.from(
        format === 'cast'
          ? exportCast(opened.frames(), channel, opened.header.metadata)
          : exportText(opened.frames(), channel),
      )
    },
  }
}

async function reader(keeper: RecordingKeeper, entry: CatalogEntry): Promise<RecordingReader> {
  const key = await unwrapKey(await readFile(join(entry.directory, KEY_FILE_NAME)), keeper.keys.identity)
  return RecordingReader.open(createReadStream(join(entry.directory, FILE_NAME)), key)
}
