/** Bounds how much of a session's data its recording keeps. */

/** The divisor that gives the share of one direction of a channel in the session's quota for streams. */
const DIRECTION_PART = 4

/** The quota of a session, shared by its channels, and the share of each direction of a channel. */
export class Quota {
  readonly perDirection: number
  /**
   * Ends the session once the quota is exceeded; recording continues until then. Absent if only hashes are
   * kept beyond the quota.
   */
  readonly end: (() => void) | undefined
  #left: number

  constructor(session: number, perDirection: number, end?: () => void) {
    this.perDirection = perDirection
    this.end = end
    this.#left = session
  }

  /** The quota of channels without a terminal. */
  static ofStreams(bytes: number, end?: () => void): Quota {
    return new Quota(bytes, Math.floor(bytes / DIRECTION_PART), end)
  }

  /** The quota of screens: any of them may use all of it. */
  static ofScreens(bytes: number, end?: () => void): Quota {
    return new Quota(bytes, bytes, end)
  }

  /** Takes up to `wanted` bytes from the session's quota; returns how many were granted. */
  take(wanted: number): number {
    const granted = Math.min(wanted, this.#left)
    this.#left -= granted
    return granted
  }
}
