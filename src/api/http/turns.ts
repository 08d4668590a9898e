/**
 * Runs work on the same key one after the other, in the order of arrival, and work on different keys at once.
 */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>()

  async run<T>(thing: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(thing) ?? Promise.resolve()
    const turn = before.then(work, work)
    this.#last.set(thing, turn)
    try {
      return await turn
    } finally {
      if (this.#last.get(thing) === turn) this.#last.delete(thing)
    }
  }
}
