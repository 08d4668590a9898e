/**
 * One option in one direction by the Q method (RFC 1143 section 7), which never answers an answer, so that two peers
 * cannot make each other talk without end.
 */

/** What to send: the positive verb (WILL, DO), the negative one, or nothing. */
export type Answer = boolean | undefined

export class OptionState {
  /** `want-…`: asked for, not answered yet. */
  #state: 'no' | 'yes' | 'want-no' | 'want-yes' = 'no'
  /** The opposite is to be asked for as soon as there is an answer (the RFC's queue). */
  #isOpposite = false

  get isOn(): boolean {
    return this.#state === 'yes'
  }

  /** Asked for, and not answered yet. */
  get isAsked(): boolean {
    return this.#state === 'want-yes'
  }

  /** The peer has sent its positive or negative verb about an option that it may switch on. */
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
          // A positive answer to a negative verb is an error of the peer: it does what was wished for last.
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

  /** This side wishes the option on or off. */
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
