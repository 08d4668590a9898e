/**
 * Limits the processor time for drawing one recording's terminals, or its desktop. Most recordings need a
 * fiftieth of it; hostile output (a reset in every second byte of the largest screen) needs minutes for a few
 * kilobytes.
 */

/** Limits in seconds of processor time. */
interface Limits {
  /** Limit for any recording, the addition for each MiB drawn, and the maximum. */
  base: number
  perMib: number
  most: number
}

export const TERMINAL_LIMITS: Limits = { base: 5, perMib: 4, most: 120 }
/**
 * Drawing a desktop takes about a fifteenth of a second for each MiB sent, and a recording may have
 * gigabytes.
 */
export const DESKTOP_LIMITS: Limits = { base: 10, perMib: 0.5, most: 1200 }
const MIB = 1024 * 1024
const MICROSECONDS = 1_000_000

export class Allowance {
  readonly #used: () => number
  readonly #limits: Limits
  #earned: number
  #spent = 0

  /** `used`: seconds of processor time that the thread has used, since any moment. */
  constructor(used: () => number = usedByThread, limits: Limits = TERMINAL_LIMITS) {
    this.#used = used
    this.#limits = limits
    this.#earned = limits.base
  }

  static ofDesktop(): Allowance {
    return new Allowance(usedByThread, DESKTOP_LIMITS)
  }

  /** True if the allowance is used up for good: further output is not drawn. */
  get isSpent(): boolean {
    return this.#spent >= Math.min(this.#earned, this.#limits.most)
  }

  earn(bytes: number): void {
    this.#earned += (bytes / MIB) * this.#limits.perMib
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
