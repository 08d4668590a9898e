/**
 * Notices a client that takes nothing of what waits for it. What is typed meanwhile was typed by somebody who cannot see
 * what comes of it, and what the bastion keeps of that has a bound.
 */

/** A slow line takes some of what waits in that time. */
export const TAKING_MS = 3_000

export class TakingWatch {
  #since: number | undefined

  /** Something waits for the client. */
  waits(): void {
    this.#since ??= performance.now()
  }

  /** It has taken some. `hasRest`: more waits. */
  took(hasRest: boolean): void {
    this.#since = hasRest ? performance.now() : undefined
  }

  get isStuck(): boolean {
    return this.#since !== undefined && performance.now() - this.#since >= TAKING_MS
  }
}
