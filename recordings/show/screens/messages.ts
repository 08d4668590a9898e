/** Messages between a thread that draws screens and its owner. */
import type { PictureChange } from './desktop.ts'
import type { FollowedFrame } from './follower.ts'
import type { ChannelState } from './screen.ts'

export type ToDrawer =
  /** Requests a session's state after its first `frames` frames; `path` and `key` are its recording's. */
  | { kind: 'state'; request: number; session: string; path: string; key: Uint8Array; frames: number }
  /** Frames of a followed session: the thread reports their changes of the desktop. */
  | { kind: 'frames'; session: string; frames: readonly FollowedFrame[] }
  /** The session has no viewer left. */
  | { kind: 'forget'; session: string }

export type FromDrawer =
  | { kind: 'state'; request: number; channels: ChannelState[] }
  | { kind: 'failed'; request: number; reason: string }
  | { kind: 'changes'; session: string; changes: PictureChange[] }
  /** No changes of the session are reported until its next state. */
  | { kind: 'lost'; session: string }
