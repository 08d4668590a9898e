/** Causes for which the input of a session's client is held. */

/** `order`: of a user or an API key. `unwatched`: no watcher is there, and the authorization wants one. */
export type HoldCause = 'order' | 'unwatched'

export interface Hold {
  reason: string
  /** Name of the user or key that ordered it; absent for the broker's own rule. */
  by?: string
  /** Milliseconds since the epoch. */
  since: number
}

/** The actor of an order. */
export interface OrderedBy {
  name: string
  apiKey?: string
}

/** Returns why input is held: an order before a missing watcher. */
export function holdOf({ holds }: { holds?: ReadonlyMap<HoldCause, Hold> }): Hold | undefined {
  return holds?.get('order') ?? holds?.get('unwatched')
}
