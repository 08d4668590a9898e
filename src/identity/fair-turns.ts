/**
 * Shares a scarce resource among networks: a limited number of works run at once, a limited number wait, and
 * the next is of the network that has waited longest for its turn. So no network gets more than its share
 * while others wait, and when the queue is full, the network with the most gives up a place. Neighbouring
 * networks (an IPv4 /24, an IPv6 /48) share one such share first, since one client may have all of them.
 */
import { neighbourhoodOf, networkOf } from '../model/networks.ts'
import { BusyError } from './errors.ts'

interface Waiting {
  begin: () => void
  giveWay: (error: BusyError) => void
}

/** Waiting works of one neighbourhood by network, in the order of their turns. */
type Neighbours = Map<string, Waiting[]>

export class FairTurns {
  readonly #concurrent: number
  readonly #maxWaiting: number
  /** Waiting works by neighbourhood, in the order of their turns. */
  readonly #waiting = new Map<string, Neighbours>()
  #count = 0
  #running = 0

  /** `concurrent`: works at a time; `maxWaiting`: works that may wait. */
  constructor(concurrent: number, maxWaiting: number) {
    this.#concurrent = concurrent
    this.#maxWaiting = maxWaiting
  }

  /**
   * Runs the work when its turn comes; `source` is the address that it is for.
   * @throws BusyError if the queue is full, or if its place was given up to another network
   */
  async run<T>(source: string, work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#concurrent) this.#running++
    // A work that ends hands its place over directly, so that no newcomer gets in between.
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
    // Moves to the end of the line if it has more waiting.
    neighbours.delete(network!)
    if (own.length > 0) neighbours.set(network!, own)
    this.#waiting.delete(area)
    if (neighbours.size > 0) this.#waiting.set(area, neighbours)
    return next
  }

  /**
   * Drops the newest waiting work of the network that has most. Returns false if no network has more than the
   * caller's.
   */
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

/** Returns the entry with the largest size; the last one, if several have it. */
function largest<T>(from: ReadonlyMap<string, T>, size: (one: T) => number): [string, T | undefined] {
  let best: [string, T | undefined] = ['', undefined]
  for (const one of from) if (best[1] === undefined || size(best[1]) <= size(one[1])) best = one
  return best
}
