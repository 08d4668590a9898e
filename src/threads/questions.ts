/** Open questions to a thread, each with its number. */

interface Open<Value> {
  resolve: (value: Value) => void
  reject: (error: Error) => void
}

export class Questions<Value> {
  readonly #open = new Map<number, Open<Value>>()
  #next = 0

  get size(): number {
    return this.#open.size
  }

  /** Sends a question with its own number; the promise settles by `answer`, `fail` or `failAll`. */
  ask(send: (id: number) => void): Promise<Value> {
    const id = this.#next++
    return new Promise((resolve, reject) => {
      send(id)
      this.#open.set(id, { resolve, reject })
    })
  }

  /** Resolves a question; ignores one that is not open. */
  answer(id: number, value: Value): void {
    this.#take(id)?.resolve(value)
  }

  fail(id: number, error: Error): void {
    this.#take(id)?.reject(error)
  }

  /** Rejects every open question. */
  failAll(error: Error): void {
    const open = [...this.#open.values()]
    this.#open.clear()
    for (const { reject } of open) reject(error)
  }

  #take(id: number): Open<Value> | undefined {
    const open = this.#open.get(id)
    this.#open.delete(id)
    return open
  }
}
