/** What goes between a session that has guests and the thread that draws for them. */
import type { FrameType } from '../../../recordings/container/frames.ts'
import type { Area } from '../codec/client-messages.ts'
import type { PixelFormat } from '../codec/pixel-format.ts'

export type ToThread =
  /** The desktop is drawn from here on, and is black until more has come. */
  | { kind: 'begin'; width: number; height: number }
  /** A frame of the recording (docs/recording-format.md): `graphics`, `pixel_format` or `pointer`. */
  | { kind: 'frame'; type: FrameType; payload: Uint8Array }
  /** A guest whose viewer was told this size, and RGB888. */
  | { kind: 'join'; guest: number; width: number; height: number }
  | { kind: 'format'; guest: number; format: PixelFormat }
  | { kind: 'encodings'; guest: number; encodings: readonly number[] }
  | { kind: 'name'; name: string }
  /** The guest's viewer takes an update. */
  | { kind: 'request'; guest: number; isIncremental: boolean; area: Area }
  | { kind: 'leave'; guest: number }

export type FromThread =
  /** Messages for the guest's viewer, whole, and the size that it takes its desktop for after them. */
  | { kind: 'update'; guest: number; bytes: Uint8Array; width: number; height: number }
  /** So many bytes of `frame` were drawn. */
  | { kind: 'drawn'; bytes: number }
  /** What came cannot be drawn: no more comes out of it. */
  | { kind: 'stopped'; reason: string }
