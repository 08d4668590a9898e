/**
 * Authenticators that were accepted, so that none is accepted twice (RFC 4120 section 3.2.3). Each is kept for as long as
 * its time could be taken as current. Where there is no room left, new ones are refused: leaving old ones out would let
 * them be replayed. One client has a share only, so that it cannot take the room of all.
 */
import { createHash } from 'node:crypto'
import { SKEW_MS } from './tickets.ts'

const MAX_KEPT = 65_536
const MAX_OF_CLIENT = 1024
/** Milliseconds: an authenticator may be ahead of us by the skew, and is current for another one. */
const KEPT_MS = 2 * SKEW_MS

export interface ReplayLimits {
  maxKept?: number
  maxOfClient?: number
}

export class Replays {
  readonly #since: number
  readonly #limits: Required<ReplayLimits>
  /** Digest → owner and end, in order of time. */
  readonly #kept = new Map<string, { client: string; until: number }>()
  readonly #counts = new Map<string, number>()

  /** `since`: milliseconds since the epoch at which this begins to remember. */
  constructor(since: number, { maxKept = MAX_KEPT, maxOfClient = MAX_OF_CLIENT }: ReplayLimits = {}) {
    this.#since = since
    this.#limits = { maxKept, maxOfClient }
  }

  get size(): number {
    return this.#kept.size
  }

  /**
   * Takes an authenticator down. Returns why it may not be accepted, for administrators. `made` and `now`: milliseconds
   * since the epoch.
   */
  flawOf(sealed: Uint8Array, client: string, made: number, now: number): string | undefined {
    this.#expire(now)
    // It may have been accepted before the restart.
    if (made < this.#since) return 'the ticket was shown by a clock that was before our start'
    const digest = createHash('sha256').update(sealed).digest('base64')
    if (this.#kept.has(digest)) return 'the ticket was shown before with the same proof'
    const count = this.#counts.get(client) ?? 0
    const { maxKept, maxOfClient } = this.#limits
    if (maxKept <= this.#kept.size || maxOfClient <= count)
      return 'too many tickets were shown within ten minutes'
    this.#kept.set(digest, { client, until: now + KEPT_MS })
    this.#counts.set(client, count + 1)
    return undefined
  }

  #expire(now: number): void {
    for (const [digest, { client, until }] of this.#kept) {
      if (now <= until) return
      this.#kept.delete(digest)
      const count = this.#counts.get(client)! - 1
      if (count === 0) this.#counts.delete(client)
      else this.#counts.set(client, count)
    }
  }
}
