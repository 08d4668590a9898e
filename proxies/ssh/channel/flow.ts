/**
 * The window of one direction of a channel (RFC 4254 5.2), kept separately for both ends of the bastion: the
 * bytes that the receiving peer lets the bastion send (`window`), and the bytes that the bastion lets the
 * sending peer send (`credit`). The credit follows the window but never exceeds MAX_WINDOW, so a receiver
 * that grants a gigabyte and then stops reading fills no more than that. Where the bastion buffers unread
 * data (terminal-output.ts), the credit does not fall below that buffer's size.
 */
import { MAX_WINDOW } from './limits.ts'

/** An adjustment is sent once it amounts to 1/STEP_PART of the most that a sender may be granted. */
const STEP_PART = 2
/** Part of a step that is worth sending when the receiver has widened its window. */
const REFILL_PART = 4

const LARGEST_WINDOW = 0xffffffff

export class Flow {
  #window: number
  #credit: number
  readonly #reserve: number
  /** Bytes received from the sender that still wait for the receiver. */
  held = 0
  /** Bytes that the bastion accepts from the sender even if the receiver accepts none: it buffers them. */
  ahead = 0
  /** Largest number of bytes that the sender is granted. */
  limit = MAX_WINDOW

  /**
   * `reserve`: bytes of the receiver's window for the bastion's own messages; never granted to the sender.
   */
  constructor(window: number, credit: number, reserve = 0) {
    this.#window = window
    this.#credit = credit
    this.#reserve = reserve
  }

  /** Bytes that the receiver still accepts. */
  get window(): number {
    return this.#window
  }

  /** Bytes of the window beyond the bastion's reserve. */
  get room(): number {
    return Math.max(0, this.#window - this.#reserve)
  }

  /** Smallest grant worth sending: smaller ones wait, so that not every message costs an adjustment. */
  get step(): number {
    return Math.max(1, Math.floor(Math.min(this.limit, this.ahead || this.room) / STEP_PART))
  }

  /**
   * Smallest grant worth sending when the receiver has widened its window: OpenSSH does so every three
   * packets, and each grant wakes the sender. Any grant is, if the sender has little left.
   */
  get refill(): number {
    return this.ahead > 0 || this.#credit < this.step ? 1 : Math.ceil(this.step / REFILL_PART)
  }

  /** Bytes that the sender may still send. */
  get credit(): number {
    return this.#credit
  }

  /** Counts `bytes` received from the sender. Returns false if they exceed its credit. */
  received(bytes: number): boolean {
    if (bytes > this.#credit) return false
    this.#credit -= bytes
    return true
  }

  /** Counts `bytes` sent to the receiver, forwarded or the bastion's own. */
  forwarded(bytes: number): void {
    this.#window -= bytes
  }

  /** Adds `bytes` to the receiver's window. Returns false if the sum exceeds the protocol's limit. */
  widen(bytes: number): boolean {
    if (this.#window + bytes > LARGEST_WINDOW) return false
    this.#window += bytes
    return true
  }

  /** Returns the bytes to grant the sender now, or 0 if fewer than `atLeast`; counts them as granted. */
  grant(atLeast = 1): number {
    const taken = Math.max(this.ahead, Math.min(this.#window - this.#reserve, this.limit))
    const due = taken - this.#credit - this.held
    if (due < atLeast) return 0
    this.#credit += due
    return due
  }
}
