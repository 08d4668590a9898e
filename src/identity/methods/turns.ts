/** Limits how many sign-ins wait for the servers of one method: those of one network, and in all. None is queued. */
import { networkOf } from '../../model/networks.ts'

export const MAX_ASKING = 256
/** Well below the failures that lock an address: a server that hangs holds up no other user at that address. */
export const MAX_ASKING_OF_NETWORK = 16

export class Turns {
  readonly #ofNetwork = new Map<string, number>()
  #all = 0

  get size(): number {
    return this.#all
  }

  /** Returns undefined, without starting the work, if too many wait already. */
  async run<T>(source: string, work: () => Promise<T>): Promise<T | undefined> {
    const network = networkOf(source)
    const own = this.#ofNetwork.get(network) ?? 0
    if (MAX_ASKING <= this.#all || MAX_ASKING_OF_NETWORK <= own) return undefined
    this.#all++
    this.#ofNetwork.set(network, own + 1)
    try {
      return await work()
    } finally {
      this.#all--
      const left = this.#ofNetwork.get(network)! - 1
      if (left === 0) this.#ofNetwork.delete(network)
      else this.#ofNetwork.set(network, left)
    }
  }
}
