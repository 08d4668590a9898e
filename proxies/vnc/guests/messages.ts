/** Messages between a session with guests and the thread that draws for them. */
import type { FrameType } from '../../../recordings/container/frames.ts'
import type { Area } from '../codec/client-messages.ts'
import type { PixelFormat } from '../codec/pixel-format.ts'

export type ToThread =
  /** Starts a desktop, black until frames arrive. */
  | { kind: 'begin'; width: number; height: number }
  /** A frame of the recording (docs/recording-format.md): `graphics`, `pixel_format` or `pointer`. */
  | { kind: 'frame'; type: FrameType; payload: Uint8Array }
  /** Adds a guest whose viewer has this size, and RGB888. */
  | { kind: 'join'; guest: number; width: number; height: number }
  | { kind: 'format'; guest: number; format: PixelFormat }
  | { kind: 'encodings'; guest: number; encodings: readonly number[] }
  | { kind: 'name'; name: string }
  /** A request of the guest's viewer for an update. */
  | { kind: 'request'; guest: number; isIncremental: boolean; area: Area }
  | { kind: 'leave'; guest: number }

export type FromThread =
  /** Complete messages for the guest's viewer, and the size of its desktop after them. */
  | { kind: 'update'; guest: number; bytes: Uint8Array; width: number; height: number }
  /** Bytes of `frame` that were drawn. */
  | { kind: 'drawn'; bytes: number }
  /** The frames cannot be drawn: no more updates follow. */
  | { kind: 'stopped'; reason: string }
