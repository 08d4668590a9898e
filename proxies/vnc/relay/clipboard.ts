/**
 * The clipboard between viewer and target: forwards the data that the rights allow, and logs and records it.
 * Of the extended clipboard only texts are forwarded, because the recording can show them; its messages are
 * rebuilt, so that they carry nothing else.
 */
import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import type { Right } from '../../../src/model/rights.ts'
import { Bucket } from '../../bytes/bucket.ts'
import { displayText, latin1 } from '../../bytes/text.ts'
import {
  ClipboardAccount,
  type ClipboardAccountOptions,
  type Copied,
  copiedText,
  type Direction,
} from '../../desktop/clipboard-account.ts'
import {
  type ClipboardMessage,
  encodeClipboard,
  FORMAT,
  formatsOf,
  isProvided,
  onlyFormats,
  parseClipboard,
} from '../codec/clipboard.ts'
import { CLIPBOARD_BYTES, CLIPBOARD_BYTES_PER_SECOND, CLIPBOARD_REPEATED } from './limits.ts'

const RIGHTS: Readonly<Record<Direction, Right>> = { up: 'VNC_CLIPBOARD_UP', down: 'VNC_CLIPBOARD_DOWN' }

/** Pictures and files are excluded: no right covers them here, and no recording could show them. */
const PASSED = FORMAT.TEXT | FORMAT.RTF | FORMAT.HTML
const NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(FORMAT).map(([name, format]) => [format, name.toLowerCase()]),
)

/** Flags and body of an extended cut text. */
export type ExtendedText = ReturnType<typeof encodeClipboard>

export interface ClipboardOptions extends Omit<ClipboardAccountOptions, 'needs'> {
  rights: ReadonlySet<Right>
  /** Blocks everything toward the target, whatever the rights. */
  isViewOnly: boolean
}

export class ClipboardGuard {
  readonly #options: ClipboardOptions
  readonly #account: ClipboardAccount
  /** Limits inflated data: a message of some KiB can grow a thousandfold. */
  readonly #inflated: Readonly<Record<Direction, Bucket>>
  /**
   * The last content forwarded: its digest, and the message rebuilt from an extended cut text if that is
   * small.
   */
  readonly #last: Record<Direction, { digest: string; built?: ExtendedText | undefined }> = {
    up: { digest: '' },
    down: { digest: '' },
  }
  /** Formats whose refusal is in the audit log. */
  readonly #refused = new Set<string>()

  constructor(options: ClipboardOptions) {
    this.#options = options
    this.#account = new ClipboardAccount({ ...options, needs: RIGHTS })
    const bytes = () => new Bucket(CLIPBOARD_BYTES, CLIPBOARD_BYTES_PER_SECOND, options.now)
    this.#inflated = { up: bytes(), down: bytes() }
  }

  /** True if any direction is allowed, so that the extended clipboard is of use. */
  get isOpen(): boolean {
    return this.#may('up') || this.#may('down')
  }

  /** Returns true if a classic cut text is forwarded. */
  passesText(direction: Direction, text: Uint8Array): boolean {
    if (!this.#allows(direction)) return false
    const digest = digestOf(text)
    if (digest === this.#last[direction].digest) return true
    this.#last[direction] = { digest }
    this.#account.passed(direction, copiedText('text', latin1(text)))
    return true
  }

  /**
   * Returns the message to forward for an extended cut text of the viewer (`up`) or the target (`down`), or
   * undefined if it is dropped. Throws MalformedError for an invalid one.
   */
  extended(sender: Direction, flags: number, body: Uint8Array): ExtendedText | undefined {
    if (isProvided(flags)) return this.#provided(sender, flags, body)
    const message = parseClipboard(flags, body)
    const direction = directionOf(sender, message)
    // A refusal is logged only for data.
    if (direction !== undefined && !this.#may(direction)) return undefined
    if (message.action === 'notify') this.#refuseOthers(sender, flags)
    const left = onlyFormats(message, PASSED)
    return left && encodeClipboard(left)
  }

  /** Inflates only data that will be forwarded. */
  #provided(direction: Direction, flags: number, body: Uint8Array): ExtendedText | undefined {
    if (!this.#allows(direction)) return undefined
    this.#refuseOthers(direction, flags)
    const digest = `${flags} ${digestOf(body)}`
    const isNew = digest !== this.#last[direction].digest
    // Viewers and targets send unchanged content again.
    if (!isNew && this.#last[direction].built) return this.#last[direction].built
    if (this.#inflated[direction].isEmpty) {
      // Dropped, so the same data counts as new next time.
      this.#last[direction] = { digest: '' }
      this.#account.deny(direction, 'too much data in too short a time')
      return undefined
    }
    const message = parseClipboard(flags, body)
    if (message.action !== 'provide') return undefined
    let size = 0
    for (const data of message.items.values()) size += data.length
    this.#inflated[direction].owe(size)
    const left = onlyFormats(message, PASSED)
    if (left?.action !== 'provide') return undefined
    const built = encodeClipboard(left)
    this.#last[direction] = { digest, built: built.body.length <= CLIPBOARD_REPEATED ? built : undefined }
    if (isNew) for (const item of left.items) this.#account.passed(direction, copiedItem(item))
    return built
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

  /** Logs formats beside texts, each once. */
  #refuseOthers(direction: Direction, flags: number): void {
    for (const format of formatsOf(flags & ~PASSED)) {
      const name = nameOf(format)
      if (this.#refused.has(`${direction} ${name}`)) continue
      this.#refused.add(`${direction} ${name}`)
      this.#options.denied(RIGHTS[direction], `the clipboard does not pass ${name} on`)
    }
  }
}

/**
 * Returns the direction of the data that a message offers, requests or has, or undefined if it concerns none.
 */
function directionOf(sender: Direction, { action }: ClipboardMessage): Direction | undefined {
  if (action === 'caps') return undefined
  if (action === 'notify') return sender
  return sender === 'up' ? 'down' : 'up'
}

/** Returns a text for people: without the zero byte, and with line ends of one character. */
function copiedItem([format, data]: [number, Uint8Array]): Copied {
  const text = displayText(data).replace(/\0$/, '').replaceAll('\r\n', '\n')
  const copied = copiedText(nameOf(format), text)
  // Bytes that are invalid UTF-8 are hashed as they are: decoded, different ones would have the same digest.
  return isUtf8(data) ? copied : { ...copied, size: data.length, sha256: hash('sha256', data) }
}

const nameOf = (format: number): string => NAMES.get(format) ?? `format ${format}`

const digestOf = (bytes: Uint8Array): string => hash('sha256', bytes, 'base64')
