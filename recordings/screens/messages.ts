/** What goes between a thread that draws screens and whoever asks it. */
import type { ChannelState } from './screen.ts'

export type ToDrawer =
  /** The state of a session after its first `frames` frames; `path` and `key` of its recording. */
  | { kind: 'state'; request: number; session: string; path: string; key: Uint8Array; frames: number }
  /** Nobody watches the session any more. */
  | { kind: 'forget'; session: string }

export type FromDrawer =
  | { kind: 'state'; request: number; channels: ChannelState[] }
  | { kind: 'failed'; request: number; reason: string }
