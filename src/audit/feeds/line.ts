/**
 * Waits for a promise until the connection is closed. Used instead of a race against a promise that lives as
 * long as the connection: each race would leave its reactions on it, for every piece that is sent.
 */
export class Line {
  #end: Error | undefined
  /** Rejects the promise that is waited for. */
  #reject: ((reason: Error) => void) | undefined

  /** Rejects the current wait, and all later ones. */
  destroy(reason: Error): void {
    this.#end ??= reason
    this.#reject?.(this.#end)
    this.#reject = undefined
  }

  /** Settles as the promise does, but rejects if the connection is closed first. One wait at a time. */
  wait<T>(promise: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#reject = reject
      promise.then(resolve, reject)
      if (this.#end) reject(this.#end)
    })
  }
}
