/** Joins look-ups of single ids that are made at the same moment. */
import type { Id } from '../../model/objects.ts'

export class Batch<T> {
  readonly #read: (ids: Id[]) => Promise<Map<Id, T>>
  readonly #known = new Map<Id, Promise<T | undefined>>()
  #wanted: Id[] = []
  #next: Promise<Map<Id, T>> | undefined

  /** `read` returns objects for many ids; an id missing in its result does not exist. */
  constructor(read: (ids: Id[]) => Promise<Map<Id, T>>) {
    this.#read = read
  }

  /** Reads each id once, together with all others requested in the same turn. */
  find(id: Id): Promise<T | undefined> {
    const known = this.#known.get(id)
    if (known) return known
    this.#wanted.push(id)
    this.#next ??= Promise.resolve().then(() => this.#flush())
    const found = this.#next.then((all) => all.get(id))
    this.#known.set(id, found)
    return found
  }

  #flush(): Promise<Map<Id, T>> {
    const wanted = this.#wanted
    this.#wanted = []
    this.#next = undefined
    return this.#read(wanted)
  }
}
