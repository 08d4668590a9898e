/** Whether the database can be used: one on another machine can go away while the broker runs. */

export interface Away {
  /** When it was noticed, in milliseconds since the epoch. */
  since: number
  /** In words, without secrets. */
  reason: string
  /** Set if it answers, and has no room on its disk. */
  isFull?: true
}

export interface Reach {
  /** Undefined while the database can be used. While it is set, statements fail at once. */
  readonly away: Away | undefined
  /** Asks the database now. Resolves within seconds to whether it can be used. */
  check(): Promise<boolean>
  /** Calls the listener when `away` has changed. Returns a function that removes it. */
  onChange(listener: (away: Away | undefined) => void): () => void
}

/** The reach of a file beside the broker, where each failure is one of its caller. */
export const ALWAYS_THERE: Reach = {
  away: undefined,
  check: async () => true,
  onChange: () => () => undefined,
}
