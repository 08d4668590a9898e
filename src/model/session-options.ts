/** What a connection policy says of the sessions of any protocol. */

export interface SessionOptions {
  /** Seconds without a sign of the user's until the session ends; 0: no end. */
  idleTimeout: number
  /** Seconds that a session lasts at most; 0: no end. */
  maxDuration: number
  /** What becomes of a running session when the recordings' volume has less free space than it must have. */
  pastMinFree: PastMinFree
  /** The user is told when somebody watches. */
  tellWatched: boolean
}

/** `go_on`: its recording is closed there, and the session goes on without one. */
export const PAST_MIN_FREE = ['end', 'go_on'] as const
export type PastMinFree = (typeof PAST_MIN_FREE)[number]

export const SESSION_OPTIONS: Readonly<SessionOptions> = {
  idleTimeout: 0,
  maxDuration: 0,
  pastMinFree: 'end',
  tellWatched: true,
}
