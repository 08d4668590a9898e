/**
 * The clipboard between viewer and target: what each right lets through, in events and in the recording. Of the extended
 * clipboard only texts pass, which the recording can show; its messages are built anew, so that nothing rides along.
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

/** Pictures and files are not texts: no right is about them here, and no recording could show them. */
const PASSED = FORMAT.TEXT | FORMAT.RTF | FORMAT.HTML
const NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(FORMAT).map(([name, format]) => [format, name.toLowerCase()]),
)

/** Flags and body of an extended cut text. */
export type ExtendedText = ReturnType<typeof encodeClipboard>

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
  /** What went by last: its digest, and of the extended clipboard what became of it, where that is small. */
  readonly #last: Record<Direction, { digest: string; built?: ExtendedText | undefined }> = {
    up: { digest: '' },
    down: { digest: '' },
  }
  /** Formats that the audit log knows to be refused. */
  readonly #refused = new Set<string>()

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
    const digest = digestOf(text)
    if (digest === this.#last[direction].digest) return true
    this.#last[direction] = { digest }
    this.#account.passed(direction, copiedText('text', latin1(text)))
    return true
  }

  /**
   * What goes on of an extended cut text that the viewer (`up`) or the target (`down`) has sent; undefined: nothing. Throws
   * MalformedError for one that cannot be read.
   */
  extended(sender: Direction, flags: number, body: Uint8Array): ExtendedText | undefined {
    if (isProvided(flags)) return this.#provided(sender, flags, body)
    const message = parseClipboard(flags, body)
    const direction = directionOf(sender, message)
    // Nobody is told what was refused but where data was to go.
    if (direction !== undefined && !this.#may(direction)) return undefined
    if (message.action === 'notify') this.#refuseOthers(sender, flags)
    const left = onlyFormats(message, PASSED)
    return left && encodeClipboard(left)
  }

  /** Nothing is inflated that does not go on. */
  #provided(direction: Direction, flags: number, body: Uint8Array): ExtendedText | undefined {
    if (!this.#allows(direction)) return undefined
    this.#refuseOthers(direction, flags)
    const digest = `${flags} ${digestOf(body)}`
    const isNew = digest !== this.#last[direction].digest
    // Viewers and targets say again what has not changed.
    if (!isNew && this.#last[direction].built) return this.#last[direction].built
    if (this.#inflated[direction].isEmpty) {
      // Not passed on, so it has not gone by.
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

  /** What is offered or sent beside texts is told of, each format once. */
  #refuseOthers(direction: Direction, flags: number): void {
    for (const format of formatsOf(flags & ~PASSED)) {
      const name = nameOf(format)
      if (this.#refused.has(`${direction} ${name}`)) continue
      this.#refused.add(`${direction} ${name}`)
      this.#options.denied(RIGHTS[direction], `the clipboard does not pass ${name} on`)
    }
  }
}

/** Where the data goes that a message offers, asks for or has; undefined: it says nothing of any. */
function directionOf(sender: Direction, { action }: ClipboardMessage): Direction | undefined {
  if (action === 'caps') return undefined
  if (action === 'notify') return sender
  return sender === 'up' ? 'down' : 'up'
}

/** As people read it: without the zero byte, and with ends of lines of one character. */
function copiedItem([format, data]: [number, Uint8Array]): Copied {
  const text = displayText(data).replace(/\0$/, '').replaceAll('\r\n', '\n')
  const copied = copiedText(nameOf(format), text)
  // What is no UTF-8 would have the digest of other such bytes.
  return isUtf8(data) ? copied : { ...copied, size: data.length, sha256: hash('sha256', data) }
}

const nameOf = (format: number): string => NAMES.get(format) ?? `format ${format}`

const digestOf = (bytes: Uint8Array): string => hash('sha256', bytes, 'base64')
