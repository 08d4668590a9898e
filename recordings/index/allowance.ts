/**
 * The processor time that drawing one recording's terminals may take. Most of them take a fiftieth of it; output that
 * was made to cost (a reset in every second byte of the largest screen) takes minutes for what weighs a few kilobytes.
 */

/** Seconds for any recording, more for each MiB of output that is drawn, and the most there is. */
const BASE = 5
const PER_MIB = 4
const MOST = 120
const MIB = 1024 * 1024
const MICROSECONDS = 1_000_000

export class Allowance {
  readonly #used: () => number
  #earned = BASE
  #spent = 0

  /** `used`: seconds of processor time that the thread has used, since any moment. */
  constructor(used: () => number = usedByThread) {
    this.#used = used
  }

  /** Nothing is left, and there will be nothing more: what comes is not drawn. */
  get isSpent(): boolean {
    return this.#spent >= Math.min(this.#earned, MOST)
  }

  earn(bytes: number): void {
    this.#earned += (bytes / MIB) * PER_MIB
  }

  async spend<T>(work: () => Promise<T>): Promise<T> {
    const before = this.#used()
    try {
      return await work()
    } finally {
      this.#spent += this.#used() - before
    }
  }
}

function usedByThread(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / MICROSECONDS
}
