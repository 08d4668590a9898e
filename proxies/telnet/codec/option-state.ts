/**
 * One option in one direction by the Q method (RFC 1143 section 7). It never replies to a reply, so that two
 * peers cannot negotiate without end.
 */

/** The verb to send: the positive one (WILL, DO), the negative one, or none. */
export type Answer = boolean | undefined

export class OptionState {
  /** `want-…`: requested, without a reply yet. */
  #state: 'no' | 'yes' | 'want-no' | 'want-yes' = 'no'
  /** Set if the opposite is requested after the reply (the RFC's queue). */
  #isOpposite = false

  get isOn(): boolean {
    return this.#state === 'yes'
  }

  /** Requested, without a reply yet. */
  get isAsked(): boolean {
    return this.#state === 'want-yes'
  }

  /** Handles the peer's positive or negative verb for an option that it may switch on. */
  received(positive: boolean): Answer {
    const opposite = this.#isOpposite
    this.#isOpposite = false
    switch (this.#state) {
      case 'no':
        if (!positive) return undefined
        this.#state = 'yes'
        return true
      case 'yes':
        if (positive) return undefined
        this.#state = 'no'
        return false
      case 'want-no':
        if (!opposite || positive) {
          // A positive reply to a negative verb is an error of the peer: the last request stands.
          this.#state = opposite ? 'yes' : 'no'
          return undefined
        }
        this.#state = 'want-yes'
        return true
      case 'want-yes':
        if (!positive || !opposite) {
          this.#state = positive ? 'yes' : 'no'
          return undefined
        }
        this.#state = 'want-no'
        return false
    }
  }

  /** Requests the option on or off. */
  ask(on: boolean): Answer {
    switch (this.#state) {
      case 'no':
        if (!on) return undefined
        this.#state = 'want-yes'
        return true
      case 'yes':
        if (on) return undefined
        this.#state = 'want-no'
        return false
      case 'want-no':
        this.#isOpposite = on
        return undefined
      case 'want-yes':
        this.#isOpposite = !on
        return undefined
    }
  }
}
