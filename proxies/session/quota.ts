/** Bounds how much of a session's data its recording keeps. Without a recording it bounds nothing. */
import type { PastQuota } from '../../src/model/ssh-options.ts'

/** The divisor that gives the share of one direction of a channel in the session's quota for streams. */
const DIRECTION_PART = 4

export interface QuotaOptions {
  /** The policy for the bytes beyond the quota. */
  past: PastQuota
  /** Ends the session, if that is the policy; recording continues until then. */
  end?: () => void
  /** The bounded recording. While it is off, nothing counts. Absent for one that is always on. */
  recording?: { readonly isOn: boolean }
}

/** The quota of a session, shared by its channels, and the share of each direction of a channel. */
export class Quota {
  readonly perDirection: number
  readonly #options: QuotaOptions
  #left: number

  constructor(session: number, perDirection: number, options: QuotaOptions = { past: 'hash' }) {
    this.perDirection = perDirection
    this.#options = options
    this.#left = session
  }

  /** The quota of channels without a terminal. */
  static ofStreams(bytes: number, options?: QuotaOptions): Quota {
    return new Quota(bytes, Math.floor(bytes / DIRECTION_PART), options)
  }

  /** The quota of screens: any of them may use all of it. */
  static ofScreens(bytes: number, options?: QuotaOptions): Quota {
    return new Quota(bytes, bytes, options)
  }

  /** True while there is a recording to bound. */
  get isOn(): boolean {
    return this.#options.recording?.isOn ?? true
  }

  /**
   * Ends the session once the quota is exceeded. Undefined if the session continues, and only a count is kept
   * beyond the quota, or a hash.
   */
  get end(): (() => void) | undefined {
    return this.#options.past === 'end' ? this.#options.end : undefined
  }

  /** Whether the SHA-256 of the bytes beyond the quota is kept. */
  get isHashed(): boolean {
    return this.#options.past === 'hash'
  }

  /** Takes up to `wanted` bytes from the session's quota; returns how many were granted. */
  take(wanted: number): number {
    if (!this.isOn) return wanted
    const granted = Math.min(wanted, this.#left)
    this.#left -= granted
    return granted
  }
}
