/**
 * Tracks whether a user may have stopped a terminal by ^S (XOFF): then the target's terminal shows nothing,
 * not even an echo, but still passes input to its program. If that is possible at the end, output of the
 * commands run since appears only after the terminal is released. A typed ^Q (XON) proves nothing: after ^V
 * it is an ordinary character.
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

  /** Input that releases the terminal, if lines were typed since it was stopped. */
  get release(): Uint8Array | undefined {
    return this.#hasLine ? GO_ON : undefined
  }
}
