/**
 * Applies quotas to recorded streams. A stream is recorded whole until its own share or the session's quota
 * is used up. Then, by the policy, the session ends, or the rest is recorded as its count, and perhaps its
 * SHA-256, between two `unrecorded` frames. A session without a recording has no quota.
 */
import type { Unrecorded } from '../../../recordings/container/frames.ts'
import type { ContentHash } from '../../session/hash/content-hash.ts'
import type { Quota } from '../../session/quota.ts'
import type { ChannelFrames, StreamFrame } from './frames.ts'
import type { RecorderEvents } from './recorder.ts'

/** The bytes of a stream beyond its quota. */
interface Rest {
  bytes: number
  /** Absent if the policy keeps the count only. */
  hash?: ContentHash
}

/** One direction of a channel, recorded whole up to the quota. */
export class QuotaStream {
  readonly #frames: ChannelFrames
  readonly #events: RecorderEvents
  readonly #quota: Quota
  readonly #direction: Unrecorded['direction']
  #left: number
  #rest: Rest | undefined

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
    const quota = this.#quota
    if (this.#rest) {
      this.#count(this.#rest, data)
      return
    }
    if (!quota.isOn) return
    const granted = quota.take(Math.min(data.length, this.#left))
    this.#left -= granted
    const { end } = quota
    if (granted === data.length || end) {
      this.#frames.stream(type, data)
      if (granted < data.length) end?.()
      return
    }
    this.#frames.stream(type, data.subarray(0, granted))
    this.#report({ direction: this.#direction, reason: 'quota' })
    this.#rest = { bytes: 0, ...(quota.isHashed && { hash: this.#frames.newHash() }) }
    this.#count(this.#rest, data.subarray(granted))
  }

  close(): void {
    if (!this.#rest) return
    const { bytes, hash } = this.#rest
    const report = (sha256?: string) =>
      this.#report({
        direction: this.#direction,
        reason: 'quota',
        bytes,
        ...(sha256 !== undefined && { sha256 }),
      })
    if (hash) this.#frames.hashed(hash, report)
    else report()
  }

  #count(rest: Rest, data: Uint8Array): void {
    rest.bytes += data.length
    rest.hash?.update(data)
  }

  #report(gap: Unrecorded): void {
    this.#frames.unrecorded(gap)
    this.#events.onUnrecorded(gap)
  }
}
