/**
 * Whose turn it is among the SFTP channels of a session, where rules for files hold: between the target's answer of where
 * a path leads and the request that was judged by it, no other channel changes names. Within a channel the target keeps
 * the order.
 */

/** What a request does to names. */
export type Turn = 'looks' | 'changes'

/** A channel. */
export interface Participant {
  /** It may be its turn: to be asked for again, but not within this call. */
  wake(): void
}

export class Turns {
  /** Requests that have begun, by channel. */
  readonly #begun = new Map<Participant, Record<Turn, number>>()
  readonly #waiting = new Set<Participant>()

  /** False: not yet; the channel is woken when that may be over. */
  begin(who: Participant, turn: Turn): boolean {
    for (const [other, { looks, changes }] of this.#begun) {
      if (other === who || changes + (turn === 'changes' ? looks : 0) === 0) continue
      this.#waiting.add(who)
      return false
    }
    const own = this.#begun.get(who) ?? { looks: 0, changes: 0 }
    own[turn]++
    this.#begun.set(who, own)
    return true
  }

  /** A request that has begun is refused or answered. */
  end(who: Participant, turn: Turn): void {
    const own = this.#begun.get(who)
    if (own === undefined) return
    own[turn]--
    this.#wake()
  }

  /** The channel is over. */
  close(who: Participant): void {
    this.#waiting.delete(who)
    if (this.#begun.delete(who)) this.#wake()
  }

  #wake(): void {
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const one of waiting) one.wake()
  }
}
