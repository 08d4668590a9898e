/**
 * Applies quotas to recorded streams. A stream is recorded whole until its own share or the session's quota
 * is used up. Then, by the policy, the session ends, or the rest is recorded as count and SHA-256 between two
 * `unrecorded` frames.
 */
import type { Unrecorded } from '../../../recordings/container/frames.ts'
import type { ContentHash } from '../../session/hash/content-hash.ts'
import type { Quota } from '../../session/quota.ts'
import type { ChannelFrames, StreamFrame } from './frames.ts'
import type { RecorderEvents } from './recorder.ts'

/** One direction of a channel, recorded whole up to the quota. */
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
    const { end } = this.#quota
    if (granted === data.length || end) {
      this.#frames.stream(type, data)
      if (granted < data.length) end?.()
      return
    }
    this.#frames.stream(type, data.subarray(0, granted))
    this.#report({ direction: this.#direction, reason: 'quota' })
    this.#hash = this.#frames.newHash()
    this.#hash.update(data.subarray(granted))
    this.#unrecorded = data.length - granted
  }

  close(): void {
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
