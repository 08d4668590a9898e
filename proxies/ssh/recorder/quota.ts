/**
 * How much of plain streams is kept. A stream is recorded whole until its own share or the session's quota is
 * used up; the rest goes by as count and SHA-256, between two `unrecorded` frames.
 */
import type { Unrecorded } from '../../../recordings/frames.ts'
import type { ChannelFrames, StreamFrame } from './frames.ts'
import type { ContentHash } from './hash/content-hash.ts'
import type { RecorderEvents } from './recorder.ts'

/** Bytes of one direction of one channel that are recorded whole. */
export const DIRECTION_QUOTA = 16 * 1024 * 1024
/** Bytes of all channels of one session, both directions, that are recorded whole. */
export const SESSION_QUOTA = 64 * 1024 * 1024

/** The session's quota, shared by its channels, and the share of each direction of a channel. */
export class Quota {
  readonly perDirection: number
  #left: number

  constructor(session = SESSION_QUOTA, perDirection = DIRECTION_QUOTA) {
    this.perDirection = perDirection
    this.#left = session
  }

  /** Takes up to `wanted` bytes from the session's quota; returns how many were granted. */
  take(wanted: number): number {
    const granted = Math.min(wanted, this.#left)
    this.#left -= granted
    return granted
  }
}

/** One direction of a channel that is recorded whole, up to the quota. */
export class QuotaStream {
  readonly #frames: ChannelFrames
  readonly #events: RecorderEvents
  readonly #quota: Quota
  readonly #direction: Unrecorded['direction']
  #left: number
  #unrecorded = 0
  #hash: ContentHash | undefined

  constructor(
    frames: ChannelFrames,
    events: RecorderEvents,
    quota: Quota,
    direction: Unrecorded['direction'],
  ) {
    this.#frames = frames
    this.#events = events
    this.#quota = quota
    this.#direction = direction
    this.#left = quota.perDirection
  }

  write(type: StreamFrame, data: Uint8Array): void {
    if (this.#hash !== undefined) {
      this.#hash.update(data)
      this.#unrecorded += data.length
      return
    }
    const granted = this.#quota.take(Math.min(data.length, this.#left))
    this.#left -= granted
    if (granted === data.length) {
      this.#frames.stream(type, data)
      return
    }
    this.#frames.stream(type, data.subarray(0, granted))
    this.#report({ direction: this.#direction, reason: 'quota' })
    this.#hash = this.#frames.newHash()
    this.#hash.update(data.subarray(granted))
    this.#unrecorded = data.length - granted
  }

  end(): void {
    if (this.#hash === undefined) return
    this.#frames.hashed(this.#hash, (sha256) =>
      this.#report({
        direction: this.#direction,
        reason: 'quota',
        bytes: this.#unrecorded,
        ...(sha256 !== undefined && { sha256 }),
      }),
    )
  }

  #report(gap: Unrecorded): void {
    this.#frames.unrecorded(gap)
    this.#events.onUnrecorded(gap)
  }
}
