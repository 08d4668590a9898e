/** A connection policy's options for sessions of any protocol. */

export interface SessionOptions {
  /** Seconds without user input after which the session ends; 0: no limit. */
  idleTimeout: number
  /** Seconds after which a session ends; 0: no limit. */
  maxDuration: number
  /** The effect on a running session when the recordings' volume is below its minimum of free space. */
  pastMinFree: PastMinFree
  /** The user is notified when another user starts to watch. */
  tellWatched: boolean
}

/** `go_on`: the recording is closed, and the session continues without one. */
export const PAST_MIN_FREE = ['end', 'go_on'] as const
export type PastMinFree = (typeof PAST_MIN_FREE)[number]

export const SESSION_OPTIONS: Readonly<SessionOptions> = {
  idleTimeout: 0,
  maxDuration: 0,
  pastMinFree: 'end',
  tellWatched: true,
}
