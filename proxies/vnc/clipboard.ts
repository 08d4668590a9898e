/** The clipboard between viewer and target: what each right lets through, in events and in the recording. */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { EventFields } from '../../src/audit/fields.ts'
import type { Right } from '../../src/model/rights.ts'
import { Bucket } from '../bucket.ts'
import { displayText, latin1 } from '../text.ts'
import { type ClipboardMessage, FORMAT, parseClipboard } from './codec/clipboard.ts'
import { CLIPBOARD_EVENTS, CLIPBOARD_EVENTS_PER_SECOND } from './limits.ts'

/** `up`: toward the target. */
export type Direction = 'up' | 'down'

const RIGHTS: Readonly<Record<Direction, Right>> = { up: 'VNC_CLIPBOARD_UP', down: 'VNC_CLIPBOARD_DOWN' }

export interface ClipboardOptions {
  rights: ReadonlySet<Right>
  /** Nothing goes up, whatever the rights. */
  isViewOnly: boolean
  uses: (right: Right) => void
  tell: (fields: EventFields) => void
  denied: (right: Right, reason: string) => void
  record: (direction: Direction, bytes: number, text: string | undefined) => void
  /** Milliseconds, never decreasing. */
  now: () => number
}

export class ClipboardGuard {
  readonly #options: ClipboardOptions
  readonly #events: Readonly<Record<Direction, Bucket>>
  /** Texts since the last event that had none. */
  readonly #untold: Record<Direction, number> = { up: 0, down: 0 }
  /** Digest of the text that went by last. */
  readonly #last: Record<Direction, string> = { up: '', down: '' }
  readonly #denied = new Set<Direction>()

  constructor(options: ClipboardOptions) {
    this.#options = options
    const bucket = () => new Bucket(CLIPBOARD_EVENTS, CLIPBOARD_EVENTS_PER_SECOND, options.now)
    this.#events = { up: bucket(), down: bucket() }
  }

  /** Something may pass, so that the extended clipboard is of use. */
  get isOpen(): boolean {
    return this.#may('up') || this.#may('down')
  }

  /** Whether a classic cut text goes on. */
  passesText(direction: Direction, text: Uint8Array): boolean {
    if (!this.#allows(direction)) return false
    const shown = latin1(text)
    this.#passed(direction, Buffer.byteLength(shown), shown)
    return true
  }

  /**
   * Whether an extended cut text goes on that the viewer (`up`) or the target (`down`) has sent. Throws MalformedError for
   * one that cannot be read.
   */
  passesExtended(sender: Direction, flags: number, body: Uint8Array): boolean {
    const message = parseClipboard(flags, body)
    const direction = directionOf(sender, message)
    // Nobody is told what was refused but where data was to go.
    if (direction !== undefined && !this.#may(direction)) {
      if (message.action === 'provide') this.#allows(direction)
      return false
    }
    if (message.action !== 'provide') return true
    const sent = message.items.get(FORMAT.TEXT)
    const text = sent && withoutEnd(displayText(sent))
    let bytes = Buffer.byteLength(text ?? '')
    for (const [format, data] of message.items) if (format !== FORMAT.TEXT) bytes += data.length
    this.#passed(sender, bytes, text)
    return true
  }

  #may(direction: Direction): boolean {
    const { rights, isViewOnly } = this.#options
    return rights.has(RIGHTS[direction]) && !(isViewOnly && direction === 'up')
  }

  /** The audit log is told once that somebody may not: a target copies whenever something is marked. */
  #allows(direction: Direction): boolean {
    if (this.#may(direction)) return true
    if (!this.#denied.has(direction)) {
      this.#denied.add(direction)
      const { rights, denied } = this.#options
      const isMissing = !rights.has(RIGHTS[direction])
      denied(RIGHTS[direction], isMissing ? 'the right is missing' : 'the session is for viewing only')
    }
    return false
  }

  #passed(direction: Direction, size: number, text: string | undefined): void {
    const { uses, record, tell } = this.#options
    uses(RIGHTS[direction])
    const digest = createHash('sha256')
      .update(text ?? '')
      .update(`:${size}`)
      .digest('base64')
    // Viewers and targets say again what has not changed.
    if (digest === this.#last[direction]) return
    this.#last[direction] = digest
    record(direction, size, text)
    if (!this.#events[direction].take(1)) {
      this.#untold[direction] += 1
      return
    }
    const untold = this.#untold[direction]
    this.#untold[direction] = 0
    tell({
      subprotocol: RIGHTS[direction],
      direction,
      size,
      ...(untold > 0 && { reason: `${untold} more before it, in quick succession` }),
    })
  }
}

/** Where the data goes that a message offers, asks for or has; undefined: it says nothing of any. */
function directionOf(sender: Direction, { action }: ClipboardMessage): Direction | undefined {
  if (action === 'caps') return undefined
  if (action === 'notify' || action === 'provide') return sender
  return sender === 'up' ? 'down' : 'up'
}

/** As people read it: without the zero byte, and with ends of lines of one character. */
function withoutEnd(text: string): string {
  return text.replace(/\0$/, '').replaceAll('\r\n', '\n')
}
