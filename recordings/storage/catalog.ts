/**
 * The recordings on the disk, by folder: `<root>/<YYYY>/<MM>/<DD>/<session>/`. The catalog trusts the files'
 * content; only `verify` proves it.
 */
import { Buffer } from 'node:buffer'
import { type FileHandle, lstat, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { decodeTime } from 'ulid'
import { CLOSING_BODY_LENGTH, parseCheckpoint } from '../container/format/checkpoint.ts'
import { RecordingError } from '../container/format/error.ts'
import { HEADER_PREFIX_LENGTH, headerLength, type Metadata, parseHeader } from '../container/format/header.ts'
import { FILE_NAME, LINK_LENGTH } from '../container/format/limits.ts'
import { parseRecordHeader, RECORD, RECORD_HEADER_LENGTH } from '../container/format/record.ts'
import { SESSION_NAME, sessionDirectory } from '../container/keys.ts'
import type { CatalogEntry } from './catalog-entry.ts'
import { readStoredAway } from './stored-away.ts'

/** An id that begins with a time before the year 3084. */
const ULID = /^0[0-9A-HJKMNP-TV-Z]{25}$/
const TAIL_LENGTH = RECORD_HEADER_LENGTH + CLOSING_BODY_LENGTH + LINK_LENGTH

/** Yields all recordings under `root`, oldest day first; none if the root does not exist. */
export async function* recordingsIn(root: string): AsyncGenerator<CatalogEntry> {
  for (const year of await names(root, /^\d{4}$/)) {
    for (const month of await names(join(root, year), /^\d{2}$/)) {
      for (const day of await names(join(root, year, month), /^\d{2}$/)) {
        const folder = join(root, year, month, day)
        for (const session of await names(folder, SESSION_NAME)) {
          yield await recordingAt(session, join(folder, session))
        }
      }
    }
  }
}

/** Returns the recording of a session, or undefined if there is none. */
export async function findRecording(root: string, session: string): Promise<CatalogEntry | undefined> {
  const directory = await likelyDirectory(root, session)
  if (directory !== undefined) return recordingAt(session, directory)
  for (const year of await names(root, /^\d{4}$/)) {
    for (const month of await names(join(root, year), /^\d{2}$/)) {
      for (const day of await names(join(root, year, month), /^\d{2}$/)) {
        const folder = join(root, year, month, day)
        if ((await names(folder, SESSION_NAME)).includes(session))
          return recordingAt(session, join(folder, session))
      }
    }
  }
  return undefined
}

/**
 * Returns the folder by the time in the session's id, if it exists: searching the folders of years takes
 * long. The recording is elsewhere if the day ended between the id and the session's beginning, or if the id
 * is no ULID.
 */
async function likelyDirectory(root: string, session: string): Promise<string | undefined> {
  if (!ULID.test(session)) return undefined
  const directory = sessionDirectory(root, session, decodeTime(session))
  const found = await lstat(directory).catch((error: unknown) => {
    if (isMissing(error)) return undefined
    throw error
  })
  return found?.isDirectory() ? directory : undefined
}

async function names(folder: string, pattern: RegExp): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    return entries
      .filter((entry) => entry.isDirectory() && pattern.test(entry.name))
      .map((entry) => entry.name)
      .sort()
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

/** Returns the recording of a session whose folder is known. */
export async function recordingAt(session: string, directory: string): Promise<CatalogEntry> {
  let file: FileHandle
  try {
    file = await open(join(directory, FILE_NAME), 'r')
  } catch (error) {
    if (!isMissing(error)) throw error
    const away = await readStoredAway(directory)
    return away
      ? { session, directory, ...away }
      : { session, directory, state: 'empty', size: 0, metadata: {} }
  }
  try {
    const { size } = await file.stat()
    const metadata = await readMetadata(file)
    return {
      session,
      directory,
      size,
      metadata: metadata ?? {},
      ...(metadata ? await readTail(file, size) : DAMAGED),
    }
  } finally {
    await file.close()
  }
}

const DAMAGED = { state: 'damaged' } as const

async function readMetadata(file: FileHandle): Promise<Metadata | undefined> {
  try {
    const length = headerLength(await readAt(file, 0, HEADER_PREFIX_LENGTH))
    return parseHeader(await readAt(file, 0, length)).metadata
  } catch (error) {
    if (error instanceof RecordingError) return undefined
    throw error
  }
}

async function readTail(
  file: FileHandle,
  size: number,
): Promise<Pick<CatalogEntry, 'state' | 'frames' | 'digest'>> {
  if (size < TAIL_LENGTH) return { state: 'open' }
  const tail = await readAt(file, size - TAIL_LENGTH, TAIL_LENGTH)
  const record = parseRecordHeader(tail, 0)
  const body = tail.subarray(RECORD_HEADER_LENGTH, TAIL_LENGTH - LINK_LENGTH)
  const checkpoint = parseCheckpoint(body)?.checkpoint
  if (record?.type !== RECORD.checkpoint || record.length !== body.length) return { state: 'open' }
  if (!checkpoint?.closing || checkpoint.kind === 'interim') return { state: 'open' }
  const digest = tail.subarray(-LINK_LENGTH).toString('hex')
  return { state: checkpoint.kind, frames: checkpoint.closing.frames, digest }
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length)
  const { bytesRead } = await file.read(bytes, 0, length, position)
  if (bytesRead < length)
    throw new RecordingError('cut_tail', `the file ends at byte ${position + bytesRead}`, position)
  return bytes
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
