/**
 * Whether a terminal may have been stopped by its user: by ^S (XOFF), after which the target's terminal shows nothing, not
 * even an echo, and still hands on what is typed. Where that is so at the end, what was run since is seen only when the
 * terminal is let go on.
 */
import { Buffer } from 'node:buffer'

const XON = 0x11
const XOFF = 0x13
const CR = 0x0d
const LF = 0x0a
const GO_ON = Buffer.of(XON)

export class Stopped {
  #isStopped = false
  #hasReturn = false

  typed(data: Uint8Array): void {
    for (const byte of data) {
      if (byte === XOFF) {
        this.#isStopped = true
        this.#hasReturn = false
      } else if (byte === XON) this.#isStopped = false
      else if (byte === CR || byte === LF) this.#hasReturn = true
    }
  }

  /** What lets the terminal go on, if lines were typed into it while it was stopped. */
  get release(): Uint8Array | undefined {
    return this.#isStopped && this.#hasReturn ? GO_ON : undefined
  }
}
