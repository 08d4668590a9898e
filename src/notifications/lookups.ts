/**
 * Lookups of receivers' names by the system's resolver. A lookup holds a thread of libuv until it ends, and libuv has
 * two for all lookups of the process, those of targets included; one whose name servers do not answer takes many
 * seconds. So only names that were quick the last time are looked up at once, and the others one after the other.
 */
import type { LookupAddress, LookupAllOptions } from 'node:dns'

/** Milliseconds of a lookup that was not quick. */
const SLOW_MS = 1000
/** Names that are known to be quick: as many as there are notifications, and names that were tried. */
const MAX_QUICK = 200
/** Names that are looked up or wait for that: new notifications can be tried faster than bad name servers give up. */
const MAX_PENDING = 200

export interface LookupsOptions {
  lookup: (host: string, options: LookupAllOptions) => Promise<LookupAddress[]>
  /** Milliseconds of a clock that never goes back. */
  monotonic: () => number
}

export class Lookups {
  readonly #options: LookupsOptions
  readonly #quick = new Set<string>()
  /** Those that have begun, or wait for their turn. */
  readonly #pending = new Map<string, Promise<LookupAddress[]>>()
  /** Settles when the last of those that go one after the other has ended. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: LookupsOptions) {
    this.#options = options
  }

  /** Rejects as the resolver does, or if too many names wait. */
  find(host: string, options: LookupAllOptions): Promise<LookupAddress[]> {
    const key = JSON.stringify([host, options])
    const pending = this.#pending.get(key)
    if (pending) return pending
    if (this.#pending.size >= MAX_PENDING) {
      return Promise.reject(new Error(`${MAX_PENDING} names wait for their name servers: try again later`))
    }
    const isQuick = this.#quick.has(host)
    const looked = isQuick ? this.#look(host, options) : this.#last.then(() => this.#look(host, options))
    const found = looked.finally(() => this.#pending.delete(key))
    if (!isQuick) this.#last = found.catch(() => undefined)
    this.#pending.set(key, found)
    return found
  }

  async #look(host: string, options: LookupAllOptions): Promise<LookupAddress[]> {
    const { lookup, monotonic } = this.#options
    const begin = monotonic()
    try {
      return await lookup(host, options)
    } finally {
      if (this.#quick.size >= MAX_QUICK) this.#quick.clear()
      if (monotonic() - begin < SLOW_MS) this.#quick.add(host)
      else this.#quick.delete(host)
    }
  }
}
