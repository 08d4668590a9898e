/** What the broker and a thread that exports a recording say to each other: plain data. */
import type { Shown } from '../../../recordings/decode/frames/channel.ts'
import type { ExportChoice } from '../../../recordings/show/export/formats.ts'
import type { CatalogEntry } from '../../../recordings/storage/catalog-entry.ts'

export interface ExportJob {
  entry: CatalogEntry
  /** The session's key: the thread has no other. */
  key: Uint8Array
  choice: ExportChoice
}

/** `more`: one piece is wanted; `stop`: none any more. */
export type ToExporter = 'more' | 'stop'

/** First `open`, `nothing`, `graphic_session`, `ffmpeg_missing` or `failed`; then pieces as they are asked for, and `end` or `failed`. */
export type FromExporter =
  | { kind: 'open'; shown: Shown }
  | { kind: 'nothing' | 'graphic_session' | 'ffmpeg_missing' | 'end' }
  | { kind: 'piece'; bytes: Uint8Array }
  | { kind: 'failed'; reason: string }
