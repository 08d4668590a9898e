/** What goes between a thread that draws screens and whoever asks it. */
import type { PictureChange } from './desktop.ts'
import type { FollowedFrame } from './follower.ts'
import type { ChannelState } from './screen.ts'

export type ToDrawer =
  /** The state of a session after its first `frames` frames; `path` and `key` of its recording. */
  | { kind: 'state'; request: number; session: string; path: string; key: Uint8Array; frames: number }
  /** Frames of a session that is followed: what they change of its desktop is told. */
  | { kind: 'frames'; session: string; frames: readonly FollowedFrame[] }
  /** Nobody watches the session any more. */
  | { kind: 'forget'; session: string }

export type FromDrawer =
  | { kind: 'state'; request: number; channels: ChannelState[] }
  | { kind: 'failed'; request: number; reason: string }
  | { kind: 'changes'; session: string; changes: PictureChange[] }
  /** Nothing more of a session's changes is told until the next state. */
  | { kind: 'lost'; session: string }
