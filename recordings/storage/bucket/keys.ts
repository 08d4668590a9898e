/** Keys of a recording in the bucket: the same folders as on the disk, below the configured prefix. */
import { relative, sep } from 'node:path'
import { FILE_NAME, KEY_FILE_NAME } from '../../container/format/limits.ts'
import { sessionDirectory } from '../../container/keys.ts'

/** Digits of an offset, so that segments sort by their place in the file. */
const OFFSET_DIGITS = 16

export interface ObjectKeys {
  /** `<prefix><YYYY>/<MM>/<DD>/<session>/`: prefix of all objects of the session. */
  folder: string
  /** The sealed file. */
  recording: string
  keyFile: string
  /** `<folder>segments/`: pieces of a running recording. */
  segments: string
}

/**
 * Returns the keys of a session that began at `begin` (milliseconds since the epoch). Throws if the id is
 * malformed.
 */
export function objectKeys(prefix: string, session: string, begin: number): ObjectKeys {
  const path = relative('/', sessionDirectory('/', session, begin))
    .split(sep)
    .join('/')
  const folder = `${prefix}${path}/`
  return {
    folder,
    recording: `${folder}${FILE_NAME}`,
    keyFile: `${folder}${KEY_FILE_NAME}`,
    segments: `${folder}segments/`,
  }
}

/**
 * Returns the key of the piece that begins at `offset`: joined in their order, the segments are the file's
 * beginning.
 */
export function segmentKey(segments: string, offset: number): string {
  return `${segments}${String(offset).padStart(OFFSET_DIGITS, '0')}`
}
