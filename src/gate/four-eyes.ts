/**
 * Sessions that somebody has to watch: their input is held until a watcher is there, and from the moment when the
 * last has left. A session that nobody comes to watch ends. The session's own user is no watcher, by whatever key
 * or name; nor is an API key, since its holder may be that user.
 */
import type { Id } from '../model/objects.ts'
import type { Hold } from './holds.ts'
import type { Watcher } from './live-session.ts'
import type { RunningSession } from './running.ts'
import type { Suspensions } from './suspensions.ts'

/** Milliseconds until the first watcher has to be there, and until another is after the last has left. */
export const FIRST_WATCHER_MS = 600_000
export const NEXT_WATCHER_MS = 300_000
/** Milliseconds until an event that could not be written is tried again. */
const AGAIN_MS = 2_000

const NOT_BEGUN = 'this session begins when somebody watches it'
const LEFT = 'nobody watches this session any more'
const UNWATCHABLE = 'a newer broker has taken over, where this session cannot be watched: connect again'

export interface FourEyesOptions {
  suspensions: Pick<Suspensions, 'holdNow' | 'told' | 'release'>
  /** Ends the session. */
  end: (session: RunningSession, reason: string) => void
  firstMs?: number
  nextMs?: number
}

interface Place {
  watchers: Set<Watcher>
  timer: NodeJS.Timeout | undefined
}

/** Returns the hold with which such a session begins. */
export function firstHold(now: number): Hold {
  return { reason: NOT_BEGUN, since: now }
}

export class FourEyes {
  readonly #options: Required<FourEyesOptions>
  readonly #places = new Map<Id, Place>()
  #isUnwatchable = false

  constructor(options: FourEyesOptions) {
    this.#options = { firstMs: FIRST_WATCHER_MS, nextMs: NEXT_WATCHER_MS, ...options }
  }

  /** Adds a session that has been opened; the others are ignored. Its first watcher may be there already. */
  begin(session: RunningSession): void {
    if (!session.target.isWatched) return
    const place = this.#placeOf(session)
    if (place.watchers.size === 0) this.#await(session, place, this.#options.firstMs, 'nobody came to watch')
  }

  /** Reports to the users of these sessions from now on that no watcher can come. */
  onUnwatchable(sessions: Iterable<RunningSession>): void {
    this.#isUnwatchable = true
    for (const session of sessions)
      if (session.holds?.has('unwatched'))
        this.#options.suspensions.holdNow(session, 'unwatched', UNWATCHABLE)
  }

  onWatched(session: RunningSession, watcher: Watcher): void {
    if (!session.target.isWatched || watcher.userId === undefined || watcher.userId === session.userId) return
    const place = this.#placeOf(session)
    place.watchers.add(watcher)
    if (place.watchers.size > 1) return
    clearTimeout(place.timer)
    void this.#release(session, place)
  }

  /** Without its event the session stays held; it is tried again as long as a watcher is there. */
  async #release(session: RunningSession, place: Place): Promise<void> {
    try {
      await this.#options.suspensions.release(session, 'unwatched')
    } catch {
      if (place.watchers.size === 0 || this.#places.get(session.id) !== place) return
      clearTimeout(place.timer)
      place.timer = setTimeout(() => void this.#release(session, place), AGAIN_MS)
    }
  }

  onLeft(session: RunningSession, watcher: Watcher): void {
    const place = this.#places.get(session.id)
    if (!place?.watchers.delete(watcher) || place.watchers.size > 0) return
    const { suspensions, nextMs } = this.#options
    const reason = this.#isUnwatchable ? UNWATCHABLE : LEFT
    // At once: the event follows, since nothing is let happen by it.
    suspensions.holdNow(session, 'unwatched', reason)
    void suspensions.told(session, reason).catch(() => undefined)
    this.#await(session, place, nextMs, 'nobody came back to watch')
  }

  onClosed(session: Id): void {
    clearTimeout(this.#places.get(session)?.timer)
    this.#places.delete(session)
  }

  #placeOf({ id }: RunningSession): Place {
    const place = this.#places.get(id) ?? { watchers: new Set(), timer: undefined }
    this.#places.set(id, place)
    return place
  }

  #await(session: RunningSession, place: Place, ms: number, reason: string): void {
    clearTimeout(place.timer)
    const end = () => this.#options.end(session, this.#isUnwatchable ? UNWATCHABLE : reason)
    place.timer = setTimeout(end, ms)
  }
}
