/**
 * Turns at something scarce, shared among networks: so many have it at once, so many wait, and whoever is next is
 * of the network that has waited longest for its turn. So no network takes more than its share while others wait,
 * and when there is no more room to wait, it is the one with most who gives some up. Neighbouring networks (an IPv4
 * /24, an IPv6 /48) share one such share first, since one person may have all of them.
 */
import { neighbourhoodOf, networkOf } from '../model/networks.ts'
import { BusyError } from './errors.ts'

interface Waiting {
  begin: () => void
  giveWay: (error: BusyError) => void
}

/** Those of one neighbourhood, by network; in the order in which it is their turn. */
type Neighbours = Map<string, Waiting[]>

export class FairTurns {
  readonly #concurrent: number
  readonly #maxWaiting: number
  /** By neighbourhood; in the order in which it is their turn. */
  readonly #waiting = new Map<string, Neighbours>()
  #count = 0
  #running = 0

  /** `concurrent` works at a time, `maxWaiting` that wait for one to end. */
  constructor(concurrent: number, maxWaiting: number) {
    this.#concurrent = concurrent
    this.#maxWaiting = maxWaiting
  }

  /**
   * Does the work when it is its turn; `source` is the address that it is for.
   * @throws BusyError when there is no room to wait, or when it had to be given up to another network
   */
  async run<T>(source: string, work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#concurrent) this.#running++
    // whoever ends hands its place over, so that nobody can step in between
    else await this.#turn(source)
    try {
      return await work()
    } finally {
      const next = this.#takeNext()
      if (next) next.begin()
      else this.#running--
    }
  }

  #turn(source: string): Promise<void> {
    const [area, network] = [neighbourhoodOf(source), networkOf(source)]
    if (this.#maxWaiting <= this.#count && !this.#makeRoom(area, network)) throw new BusyError()
    return new Promise((begin, giveWay) => {
      const neighbours = this.#waiting.get(area) ?? new Map<string, Waiting[]>()
      const own = neighbours.get(network) ?? []
      own.push({ begin, giveWay })
      neighbours.set(network, own)
      this.#waiting.set(area, neighbours)
      this.#count++
    })
  }

  #takeNext(): Waiting | undefined {
    const [area] = this.#waiting.keys()
    if (area === undefined) return undefined
    const neighbours = this.#waiting.get(area)!
    const [network] = neighbours.keys()
    const own = neighbours.get(network!)!
    const next = own.shift()
    this.#count--
    // to the end of the line, if there are more of them
    neighbours.delete(network!)
    if (own.length > 0) neighbours.set(network!, own)
    this.#waiting.delete(area)
    if (neighbours.size > 0) this.#waiting.set(area, neighbours)
    return next
  }

  /** The one that came last of those who have most gives way; false: nobody has more than who asks. */
  #makeRoom(area: string, network: string): boolean {
    const ofArea = this.#waiting.get(area)
    const [most, neighbours] = largest(this.#waiting, sizeOf)
    if (!neighbours) return false
    if (most !== area && sizeOf(neighbours) <= (ofArea ? sizeOf(ofArea) : 0) + 1) return false
    const [greatest, them] = largest(neighbours, ({ length }) => length)
    if (!them || (most === area && them.length <= (ofArea?.get(network)?.length ?? 0) + 1)) return false
    const last = them.pop()
    if (them.length === 0) neighbours.delete(greatest)
    if (neighbours.size === 0) this.#waiting.delete(most)
    this.#count--
    last?.giveWay(new BusyError())
    return true
  }
}

function sizeOf(neighbours: Neighbours): number {
  return [...neighbours.values()].reduce((sum, { length }) => sum + length, 0)
}

/** The last of those that are largest. */
function largest<T>(from: ReadonlyMap<string, T>, size: (one: T) => number): [string, T | undefined] {
  let best: [string, T | undefined] = ['', undefined]
  for (const one of from) if (best[1] === undefined || size(best[1]) <= size(one[1])) best = one
  return best
}
