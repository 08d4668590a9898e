/** Logs and records a desktop's clipboard: each text, or their number when many follow each other quickly. */
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import type { ProxyFields } from '../../src/contract/gate.ts'
import type { Right } from '../../src/model/rights.ts'
import { Bucket } from '../bytes/bucket.ts'
import { CLIPBOARD_EVENTS, CLIPBOARD_EVENTS_PER_SECOND } from './limits.ts'

/** `up`: toward the target. */
export type Direction = 'up' | 'down'

/** A clipboard content that was forwarded. */
export interface Copied {
  /** The kind: `text`, `html`, `files`, …, or the protocol's own name for it. */
  format: string
  /** Bytes. */
  size: number
  /** Hexadecimal. Absent if not all of the content is known. */
  sha256?: string
  /** Absent if the content is no text. */
  text?: string
}

export interface ClipboardAccountOptions {
  /** The right that each direction needs. */
  needs: Readonly<Record<Direction, Right>>
  uses: (right: Right) => void
  tell: (fields: ProxyFields<'clipboard'>) => void
  denied: (right: Right, reason: string) => void
  record: (direction: Direction, copied: Copied) => void
  /** Milliseconds, never decreasing. */
  now: () => number
}

export class ClipboardAccount {
  readonly #options: ClipboardAccountOptions
  readonly #events: Readonly<Record<Direction, Bucket>>
  /** Texts that no event has counted yet. */
  readonly #untold: Record<Direction, number> = { up: 0, down: 0 }
  readonly #denied = new Set<Direction>()

  constructor(options: ClipboardAccountOptions) {
    this.#options = options
    const bucket = () => new Bucket(CLIPBOARD_EVENTS, CLIPBOARD_EVENTS_PER_SECOND, options.now)
    this.#events = { up: bucket(), down: bucket() }
  }

  /** Logs the first refusal of each direction only: a target may copy on every selection. */
  deny(direction: Direction, reason: string): void {
    if (this.#denied.has(direction)) return
    this.#denied.add(direction)
    const { needs, denied } = this.#options
    denied(needs[direction], reason)
  }

  /** Accounts for a content that was forwarded. */
  passed(direction: Direction, copied: Copied): void {
    const { needs, uses, record, tell } = this.#options
    const { format, size, sha256 } = copied
    uses(needs[direction])
    record(direction, copied)
    if (!this.#events[direction].take(1)) {
      this.#untold[direction] += 1
      return
    }
    const untold = this.#untold[direction]
    this.#untold[direction] = 0
    tell({
      subprotocol: needs[direction],
      direction,
      format,
      size,
      ...(sha256 !== undefined && { sha256 }),
      ...(untold > 0 && { reason: `${untold} more before it, in quick succession` }),
    })
  }
}

/** Returns a text with the size and SHA-256 of its UTF-8, so that equal texts are equal in every protocol. */
export function copiedText(format: string, text: string): Copied & { text: string } {
  return { format, size: Buffer.byteLength(text), sha256: hash('sha256', text), text }
}
