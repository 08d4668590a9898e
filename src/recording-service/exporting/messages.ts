/** Messages between the broker and a thread that exports a recording: plain data. */
import type { Shown } from '../../../recordings/decode/frames/channel.ts'
import type { ExportChoice } from '../../../recordings/show/export/choices.ts'
import type { CatalogEntry } from '../../../recordings/storage/catalog-entry.ts'

export interface ExportJob {
  entry: CatalogEntry
  /** The session's key: the thread has no other key. */
  key: Uint8Array
  choice: ExportChoice
}

/** `more`: requests a piece; `stop`: cancels the export. */
export type ToExporter = 'more' | 'stop'

/**
 * First `open`, `nothing`, `graphic_session`, `ffmpeg_missing` or `failed`; then the requested pieces, and
 * `end` or `failed`.
 */
export type FromExporter =
  | { kind: 'open'; shown: Shown }
  | { kind: 'nothing' | 'graphic_session' | 'ffmpeg_missing' | 'end' }
  | { kind: 'piece'; bytes: Uint8Array }
  | { kind: 'failed'; reason: string }
