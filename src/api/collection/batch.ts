/** Look-ups that are asked for one by one at the same moment, made at once. */
import type { Id } from '../../model/objects.ts'

export class Batch<T> {
  readonly #read: (ids: Id[]) => Promise<Map<Id, T>>
  readonly #known = new Map<Id, Promise<T | undefined>>()
  #wanted: Id[] = []
  #next: Promise<Map<Id, T>> | undefined

  /** `read` answers for many ids; one that it leaves out does not exist. */
  constructor(read: (ids: Id[]) => Promise<Map<Id, T>>) {
    this.#read = read
  }

  /** Each id is read once, together with all that were asked for before the first of them is waited for. */
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
