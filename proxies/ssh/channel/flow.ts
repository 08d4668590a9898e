/**
 * The window of one direction of a channel (RFC 4254 5.2), kept apart for both ends of the bastion: what the
 * receiving peer lets the bastion send (`window`), and what the bastion has told the sending peer it may send
 * (`credit`). The credit follows the window, but never goes over MAX_WINDOW: a receiver that names a window of
 * a gigabyte and then stops reading fills no more than that. Where the bastion keeps what the receiver does not take
 * (terminal-output.ts), the credit does not go below what it keeps either.
 */
import { MAX_WINDOW } from './limits.ts'

/** Part of what a sender may be granted at most that a difference has to come to before it is told of it. */
const STEP_PART = 2

const LARGEST_WINDOW = 0xffffffff

export class Flow {
  #window: number
  #credit: number
  readonly #reserve: number
  /** Bytes of the sender that wait in the bastion for the receiver. */
  held = 0
  /** Bytes that the bastion takes from the sender at least, whatever the receiver takes: it keeps them. */
  ahead = 0
  /** Bytes that the sender is granted at most. */
  limit = MAX_WINDOW

  /** `reserve`: bytes of the receiver's window that the sender is never granted, for the bastion's own. */
  constructor(window: number, credit: number, reserve = 0) {
    this.#window = window
    this.#credit = credit
    this.#reserve = reserve
  }

  /** Bytes that the receiver still takes. */
  get window(): number {
    return this.#window
  }

  /** Bytes of the window that are not kept for the bastion's own. */
  get room(): number {
    return Math.max(0, this.#window - this.#reserve)
  }

  /** Bytes that are worth granting the sender: fewer wait, so that not every message costs an adjustment. */
  get step(): number {
    return Math.max(1, Math.floor(Math.min(this.limit, this.ahead || this.room) / STEP_PART))
  }

  /** Bytes that the sender still believes it may send. */
  get credit(): number {
    return this.#credit
  }

  /** The sender has sent `bytes`. False: more than it was allowed. */
  received(bytes: number): boolean {
    if (bytes > this.#credit) return false
    this.#credit -= bytes
    return true
  }

  /** The bastion passes `bytes` on to the receiver, or sends it as many of its own. */
  forwarded(bytes: number): void {
    this.#window -= bytes
  }

  /** The receiver lets the bastion send `bytes` more. False: the sum is over what the protocol allows. */
  widen(bytes: number): boolean {
    if (this.#window + bytes > LARGEST_WINDOW) return false
    this.#window += bytes
    return true
  }

  /** Bytes to grant the sender now, if they are `atLeast` so many; they count as granted. */
  grant(atLeast = 1): number {
    const taken = Math.max(this.ahead, Math.min(this.#window - this.#reserve, this.limit))
    const due = taken - this.#credit - this.held
    if (due < atLeast) return 0
    this.#credit += due
    return due
  }
}
