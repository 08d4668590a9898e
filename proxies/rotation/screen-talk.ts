/**
 * A talk with a device that shows prompts: what it prints, in bounded pieces, and one line of input at a time. Nothing is
 * sent at a prompt that the caller does not name.
 */
import { stripVTControlCharacters } from 'node:util'
import { ChangeError, said } from './plugin.ts'

/** Characters that a device may print in one job. */
export const MAX_PRINTED = 256 * 1024
/** Characters kept between two lines of input: the last ones. */
const MAX_KEPT = 8192
/** Characters of the last line that are compared. */
const MAX_LINE = 256
/** Milliseconds without output after which a line counts as a prompt. */
const SETTLE_MS = 60
/** Milliseconds for which an unknown prompt stands before it counts as one. */
const SILENCE_MS = 4_000

export type Prompts<Kind extends string> = Readonly<Record<Kind, RegExp>>

/** A prompt that has come, and all that was printed before it since the last input. */
export interface Shown<Kind extends string> {
  kind: Kind
  line: string
  text: string
}

interface Waiting {
  look(): void
  fail(error: ChangeError): void
}

export class ScreenTalk {
  readonly #write: (text: string) => void
  readonly #secrets: readonly string[]
  readonly #decoder = new TextDecoder()
  #text = ''
  #printed = 0
  #failure: ChangeError | undefined
  #waiting: Waiting | undefined

  constructor(write: (text: string) => void, secrets: readonly string[]) {
    this.#write = write
    this.#secrets = secrets
  }

  /** Call with all that the device prints. */
  received(bytes: Uint8Array): void {
    this.#printed += bytes.length
    if (this.#printed > MAX_PRINTED) {
      this.fail(new ChangeError('unexpected_answer', 'the target floods the bastion with output'))
      return
    }
    this.#text = (this.#text + this.#decoder.decode(bytes, { stream: true })).slice(-MAX_KEPT)
    this.#waiting?.look()
  }

  /** Call when the connection has ended; the first error counts. */
  fail(error: ChangeError): void {
    this.#failure ??= error
    this.#waiting?.fail(this.#failure)
  }

  /** Sends a line. Further output is the reply. */
  send(line: string): void {
    this.#text = ''
    this.#write(`${line}\r`)
  }

  /** Waits for one of these prompts as the last line. @throws ChangeError `unexpected_answer` for another one */
  next<Kind extends string>(prompts: Prompts<Kind>): Promise<Shown<Kind>> {
    return new Promise((resolve, reject) => {
      let settle: NodeJS.Timeout | undefined
      let silence: NodeJS.Timeout | undefined
      const end = () => {
        clearTimeout(settle)
        clearTimeout(silence)
        this.#waiting = undefined
      }
      const fail = (error: ChangeError) => {
        end()
        reject(error)
      }
      const look = () => {
        clearTimeout(settle)
        clearTimeout(silence)
        const shown = this.#shown(prompts)
        if (shown) {
          settle = setTimeout(() => {
            end()
            resolve(shown)
          }, SETTLE_MS)
        } else if (this.#lastLine.trim() !== '') {
          const text = `the target shows what is not known: ${this.words(this.#lastLine)}`
          silence = setTimeout(() => fail(new ChangeError('unexpected_answer', text)), SILENCE_MS)
        }
      }
      if (this.#failure) {
        reject(this.#failure)
        return
      }
      this.#waiting = { look, fail }
      look()
    })
  }

  /** Returns the device's text for a message, without the secrets of the job. */
  words(text: string): string {
    return said(text.replaceAll(/\s+/g, ' '), ...this.#secrets)
  }

  #shown<Kind extends string>(prompts: Prompts<Kind>): Shown<Kind> | undefined {
    const line = this.#lastLine
    const found = Object.entries<RegExp>(prompts).find(([, pattern]) => pattern.test(line))
    return found && { kind: found[0] as Kind, line, text: this.#clean.slice(0, -line.length) }
  }

  get #clean(): string {
    return stripVTControlCharacters(this.#text).replaceAll(/\r+\n?|\n\r?/g, '\n')
  }

  get #lastLine(): string {
    const text = this.#clean
    return text
      .slice(text.lastIndexOf('\n') + 1)
      .replaceAll(/\p{Cc}/gu, '')
      .slice(-MAX_LINE)
  }
}
