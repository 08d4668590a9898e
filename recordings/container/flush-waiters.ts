/** Callers that wait until the frames accepted by a writer are on the disk under a signed checkpoint. */

interface Waiter {
  groups: number
  resolve: () => void
  reject: (error: Error) => void
}

export class FlushWaiters {
  /** Number of groups on the disk under a checkpoint. */
  #proven = 0
  #waiters: Waiter[] = []

  /**
   * Resolves when this many groups are on the disk under a checkpoint; rejects with the recording's failure.
   */
  until(groups: number, failure: Error | undefined): Promise<void> {
    if (this.#proven >= groups) return Promise.resolve()
    if (failure) return Promise.reject(failure)
    return new Promise((resolve, reject) => this.#waiters.push({ groups, resolve, reject }))
  }

  /** Adds this many groups to those on the disk under a checkpoint. */
  prove(groups: number): void {
    this.#proven += groups
    const waiters = this.#waiters
    this.#waiters = waiters.filter((waiter) => waiter.groups > this.#proven)
    for (const waiter of waiters) if (waiter.groups <= this.#proven) waiter.resolve()
  }

  fail(error: Error): void {
    for (const waiter of this.#waiters.splice(0)) waiter.reject(error)
  }
}
