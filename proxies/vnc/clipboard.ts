/** The clipboard between viewer and target: what each right lets through, in events and in the recording. */
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import type { Right } from '../../src/model/rights.ts'
import { Bucket } from '../bucket.ts'
import { ClipboardAccount, type ClipboardAccountOptions, type Direction } from '../clipboard-account.ts'
import { CLIPBOARD_KEPT } from '../limits.ts'
import { displayText, latin1 } from '../text.ts'
import { type ClipboardMessage, FORMAT, isProvided, parseClipboard } from './codec/clipboard.ts'
import { CLIPBOARD_BYTES, CLIPBOARD_BYTES_PER_SECOND } from './limits.ts'

const RIGHTS: Readonly<Record<Direction, Right>> = { up: 'VNC_CLIPBOARD_UP', down: 'VNC_CLIPBOARD_DOWN' }

export interface ClipboardOptions extends Omit<ClipboardAccountOptions, 'needs'> {
  rights: ReadonlySet<Right>
  /** Nothing goes up, whatever the rights. */
  isViewOnly: boolean
}

export class ClipboardGuard {
  readonly #options: ClipboardOptions
  readonly #account: ClipboardAccount
  /** Of what is inflated: a message of some KiB can be a thousand times that. */
  readonly #inflated: Readonly<Record<Direction, Bucket>>
  /** Digest of the text that went by last. */
  readonly #last: Record<Direction, string> = { up: '', down: '' }

  constructor(options: ClipboardOptions) {
    this.#options = options
    this.#account = new ClipboardAccount({ ...options, needs: RIGHTS })
    const bytes = () => new Bucket(CLIPBOARD_BYTES, CLIPBOARD_BYTES_PER_SECOND, options.now)
    this.#inflated = { up: bytes(), down: bytes() }
  }

  /** Something may pass, so that the extended clipboard is of use. */
  get isOpen(): boolean {
    return this.#may('up') || this.#may('down')
  }

  /** Whether a classic cut text goes on. */
  passesText(direction: Direction, text: Uint8Array): boolean {
    if (!this.#allows(direction)) return false
    if (this.#isNew(direction, text)) {
      const shown = latin1(text)
      this.#account.passed(direction, Buffer.byteLength(shown), shown)
    }
    return true
  }

  /**
   * Whether an extended cut text goes on that the viewer (`up`) or the target (`down`) has sent. Throws MalformedError for
   * one that cannot be read.
   */
  passesExtended(sender: Direction, flags: number, body: Uint8Array): boolean {
    if (isProvided(flags)) return this.#passesData(sender, flags, body)
    const direction = directionOf(sender, parseClipboard(flags, body))
    // Nobody is told what was refused but where data was to go.
    return direction === undefined || this.#may(direction)
  }

  /** Nothing is inflated that does not go on, or that has gone on already. */
  #passesData(direction: Direction, flags: number, body: Uint8Array): boolean {
    if (!this.#allows(direction)) return false
    if (!this.#isNew(direction, body)) return true
    if (this.#inflated[direction].isEmpty) {
      // Not passed on, so it has not gone by.
      this.#last[direction] = ''
      this.#account.deny(direction, 'too much data in too short a time')
      return false
    }
    const message = parseClipboard(flags, body)
    if (message.action !== 'provide') return false
    let size = 0
    for (const data of message.items.values()) size += data.length
    this.#inflated[direction].owe(size)
    const sent = message.items.get(FORMAT.TEXT)
    const text = sent && withoutEnd(displayText(sent.subarray(0, CLIPBOARD_KEPT)))
    if (sent && text !== undefined && sent.length <= CLIPBOARD_KEPT) {
      size += Buffer.byteLength(text) - sent.length
    }
    this.#account.passed(direction, size, text)
    return true
  }

  #may(direction: Direction): boolean {
    const { rights, isViewOnly } = this.#options
    return rights.has(RIGHTS[direction]) && !(isViewOnly && direction === 'up')
  }

  #allows(direction: Direction): boolean {
    if (this.#may(direction)) return true
    const isMissing = !this.#options.rights.has(RIGHTS[direction])
    this.#account.deny(direction, isMissing ? 'the right is missing' : 'the session is for viewing only')
    return false
  }

  /** Viewers and targets say again what has not changed. */
  #isNew(direction: Direction, sent: Uint8Array): boolean {
    const digest = hash('sha256', sent, 'base64')
    const isNew = digest !== this.#last[direction]
    this.#last[direction] = digest
    return isNew
  }
}

/** Where the data goes that a message offers, asks for or has; undefined: it says nothing of any. */
function directionOf(sender: Direction, { action }: ClipboardMessage): Direction | undefined {
  if (action === 'caps') return undefined
  if (action === 'notify') return sender
  return sender === 'up' ? 'down' : 'up'
}

/** As people read it: without the zero byte, and with ends of lines of one character. */
function withoutEnd(text: string): string {
  return text.replace(/\0$/, '').replaceAll('\r\n', '\n')
}
