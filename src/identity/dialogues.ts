/**
 * Dialogues of sign-in that wait for the user's answers: a limited number of each user name at one network, of each
 * network, and in all, each for a limited time and for its owner alone.
 */
import { randomBytes } from 'node:crypto'
import { networkOf } from '../model/networks.ts'

/** Milliseconds within which a round has to be answered. */
export const DIALOGUE_MS = 180_000
/** Dialogues of one name from one network; a further one ends the oldest. */
export const MAX_OF_NAME = 4
export const MAX_OF_NETWORK = 128
export const MAX_DIALOGUES = 10_000
/** Rounds of one sign-in. */
export const MAX_ROUNDS = 16

/** Bounds on dialogues; `ms`: milliseconds within which a round has to be answered. */
export interface DialogueLimits {
  ms: number
  ofName: number
  ofNetwork: number
  inAll: number
}

const LIMITS: DialogueLimits = {
  ms: DIALOGUE_MS,
  ofName: MAX_OF_NAME,
  ofNetwork: MAX_OF_NETWORK,
  inAll: MAX_DIALOGUES,
}

export interface Dialogue {
  /** Key of the user's name. */
  name: string
  /** Address of the client. */
  source: string
  /** Names the connection. */
  owner: string
}

interface Kept<D> {
  dialogue: D
  ends: number
}

export class Dialogues<D extends Dialogue> {
  readonly #kept = new Map<string, Kept<D>>()
  readonly #now: () => number
  readonly #onEnded: (dialogue: D) => void
  readonly #limits: DialogueLimits
  #timer: NodeJS.Timeout | undefined

  /** `now` returns milliseconds since the epoch. `onEnded` is called with each one that ends without an answer. */
  constructor(now: () => number, onEnded: (dialogue: D) => void, limits: DialogueLimits = LIMITS) {
    this.#now = now
    this.#onEnded = onEnded
    this.#limits = limits
  }

  get size(): number {
    return this.#kept.size
  }

  /** Keeps a dialogue, and returns the id of its round. */
  open(dialogue: D): string {
    this.#endOld()
    const { ms, ofName, ofNetwork, inAll } = this.#limits
    const network = networkOf(dialogue.source)
    // The oldest come first, since all have the same time.
    const near = [...this.#kept].filter(([, { dialogue: other }]) => networkOf(other.source) === network)
    const same = near.filter(([, { dialogue: other }]) => other.name === dialogue.name)
    const [oldest] = this.#kept.keys()
    if (ofName <= same.length) this.end(same[0]![0])
    else if (ofNetwork <= near.length) this.end(near[0]![0])
    else if (inAll <= this.#kept.size && oldest !== undefined) this.end(oldest)
    const id = randomBytes(16).toString('base64url')
    this.#kept.set(id, { dialogue, ends: this.#now() + ms })
    this.#arm()
    return id
  }

  /** Returns the dialogue, once, if it is this owner's. */
  take(id: string, owner: string): D | undefined {
    this.#endOld()
    const kept = this.#kept.get(id)
    if (kept?.dialogue.owner !== owner) return undefined
    this.#kept.delete(id)
    return kept.dialogue
  }

  has(id: string): boolean {
    return this.#kept.has(id)
  }

  /** Ends a dialogue that will not be answered. */
  end(id: string): void {
    const kept = this.#kept.get(id)
    if (!this.#kept.delete(id) || !kept) return
    this.#onEnded(kept.dialogue)
  }

  #endOld(): void {
    const now = this.#now()
    for (const [id, { ends }] of this.#kept) {
      // A clock that was set back ends them too.
      if (now < ends && ends <= now + this.#limits.ms) break
      this.end(id)
    }
  }

  /** One timer for all. */
  #arm(): void {
    if (this.#timer || this.#kept.size === 0) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#endOld()
      this.#arm()
    }, this.#limits.ms / 10).unref()
  }
}
