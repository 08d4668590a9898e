/** How much of a session's data is kept in its recording. */

/** The part of a session's quota for streams that one direction of a channel may take. */
const DIRECTION_PART = 4

/** The quota of a session, shared by its channels, and the share of each direction of a channel. */
export class Quota {
  readonly perDirection: number
  /** Past the quota the session ends; until it has, recording goes on. Absent: what follows goes by hash. */
  readonly end: (() => void) | undefined
  #left: number

  constructor(session: number, perDirection: number, end?: () => void) {
    this.perDirection = perDirection
    this.end = end
    this.#left = session
  }

  /** Of channels without a terminal. */
  static ofStreams(bytes: number, end?: () => void): Quota {
    return new Quota(bytes, Math.floor(bytes / DIRECTION_PART), end)
  }

  /** Of screens: any of them may take all of it. */
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
