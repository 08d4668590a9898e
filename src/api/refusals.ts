/**
 * How often refused keys from one address are written to the audit: whoever tries keys at full speed must not fill
 * the disk with it. A refusal beyond that is answered like the others, and a good key is never held up.
 */
import { networkOf } from '../model/networks.ts'
import { MAX_REFUSALS, MAX_REFUSING_ADDRESSES, REFUSAL_WINDOW } from './limits.ts'

export class Refusals {
  readonly #byNetwork = new Map<string, { since: number; count: number }>()

  /** Counts one more; `last` is the last that is written until the window is over, `over` one beyond it. */
  note(address: string, now: number): 'written' | 'last' | 'over' {
    const network = networkOf(address)
    const known = this.#byNetwork.get(network)
    const entry = known && now - known.since < REFUSAL_WINDOW ? known : { since: now, count: 0 }
    entry.count += 1
    // the order of insertion is that of the last refusal
    this.#byNetwork.delete(network)
    this.#byNetwork.set(network, entry)
    if (this.#byNetwork.size > MAX_REFUSING_ADDRESSES) {
      const [quietest] = this.#byNetwork.keys()
      if (quietest !== undefined) this.#byNetwork.delete(quietest)
    }
    if (entry.count > MAX_REFUSALS) return 'over'
    return entry.count === MAX_REFUSALS ? 'last' : 'written'
  }
}
