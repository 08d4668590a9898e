/**
 * What a connection waits for, until it is over. Instead of a race against a promise that lives as long as the
 * connection: each race would leave its reactions on that one, for every piece that is sent.
 */
export class Line {
  #end: Error | undefined
  /** Of the one that waits now. */
  #reject: ((reason: Error) => void) | undefined

  /** Rejects what waits now, and all that waits later. */
  destroy(reason: Error): void {
    this.#end ??= reason
    this.#reject?.(this.#end)
    this.#reject = undefined
  }

  /** As the promise, but rejects when the connection is over before it. One at a time waits so. */
  wait<T>(promise: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#reject = reject
      promise.then(resolve, reject)
      if (this.#end) reject(this.#end)
    })
  }
}
