/**
 * Turns of a session's SFTP channels where rules for files apply: between the target's reply about a path and
 * the request checked by it, no other channel changes names. Within a channel, the target keeps the order.
 */

/** The effect of a request on names. */
export type Turn = 'looks' | 'changes'

/** A channel. */
export interface Participant {
  /** Called when it may be this channel's turn: it should try again, but not within this call. */
  wake(): void
}

export class Turns {
  /** Requests under way, by channel. */
  readonly #begun = new Map<Participant, Record<Turn, number>>()
  readonly #waiting = new Set<Participant>()

  /** Returns false if another channel has the turn; the channel is woken when it may try again. */
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

  /** Call when a request under way is refused or answered. */
  end(who: Participant, turn: Turn): void {
    const own = this.#begun.get(who)
    if (own === undefined) return
    own[turn]--
    this.#wake()
  }

  /** Call at the end of the channel. */
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
