/**
 * Whether a terminal may have been stopped by its user: by ^S (XOFF), after which the target's terminal shows nothing, not
 * even an echo, and still hands on what is typed. Where that may be so at the end, what was run since is seen only when the
 * terminal is let go on. A ^Q (XON) that was typed proves nothing: behind ^V it is a character like others.
 */
import { Buffer } from 'node:buffer'

const EOT = 0x04
const XON = 0x11
const XOFF = 0x13
const CR = 0x0d
const LF = 0x0a
const GO_ON = Buffer.of(XON)

export class Stopped {
  #isStopped = false
  #hasLine = false

  typed(data: Uint8Array): void {
    for (const byte of data) {
      if (byte === XOFF) this.#isStopped = true
      else if (byte === CR || byte === LF || byte === EOT) this.#hasLine ||= this.#isStopped
    }
  }

  /** What lets the terminal go on, if lines were typed into it since it was stopped. */
  get release(): Uint8Array | undefined {
    return this.#hasLine ? GO_ON : undefined
  }
}
