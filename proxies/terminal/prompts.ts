/**
 * The target's output since the last input, as lines; the last one is a prompt if nothing follows it.
 * Bounded, whatever the target prints.
 */
import { Buffer } from 'node:buffer'
import { stripVTControlCharacters } from 'node:util'
import { RE2JS } from 're2js'
import { LOGIN_PATTERNS, type LoginOptions, type LoginPattern } from '../../src/model/login-options.ts'
import { wordsOf } from '../wording/errors.ts'

/** Bytes of output that are kept: the last ones. */
export const HEARD_LIMIT = 4096
/** Characters of a line that are checked: the last ones. */
export const LINE_LIMIT = 256

export class Heard {
  readonly #patterns: Readonly<Record<LoginPattern, RE2JS>>
  #bytes = Buffer.alloc(0)
  #pending = Buffer.alloc(0)

  constructor(options: LoginOptions) {
    const compiled = LOGIN_PATTERNS.map((name): [LoginPattern, RE2JS] => [name, RE2JS.compile(options[name])])
    this.#patterns = Object.fromEntries(compiled) as Record<LoginPattern, RE2JS>
  }

  /** `pending`: output held back because it may be the beginning of a secret. */
  add(bytes: Uint8Array, pending: Uint8Array): void {
    this.#pending = Buffer.from(pending)
    const recent = bytes.subarray(Math.max(0, bytes.length - HEARD_LIMIT))
    this.#bytes = Buffer.concat([this.#bytes, recent]).subarray(-HEARD_LIMIT)
  }

  /** Forgets the output, because input was sent: further output is the reply. */
  clear(): void {
    this.#bytes = this.#pending = Buffer.alloc(0)
  }

  /** True if the last line is such a prompt. */
  asks(prompt: Exclude<LoginPattern, 'loginFailure'>): boolean {
    return this.#patterns[prompt].test(this.#lastLine)
  }

  /** True if the last line is the prompt of a privileged user. */
  get isPrivileged(): boolean {
    return /#\s*$/.test(this.#lastLine)
  }

  get #lastLine(): string {
    return linesOf(Buffer.concat([this.#bytes, this.#pending])).at(-1) ?? ''
  }

  get saysFailure(): boolean {
    return this.#failure !== undefined
  }

  get #failure(): string | undefined {
    return linesOf(this.#bytes).findLast((line) => this.#patterns.loginFailure.test(line))
  }

  /** Returns the line that reports a failure, or the last one, for people. */
  get reason(): string {
    const line = this.#failure
    return line === undefined ? this.lastWords : wordsOf(line.trim())
  }

  get isSilent(): boolean {
    return this.lastWords === ''
  }

  /** Returns the last line that is not empty, for people. */
  get lastWords(): string {
    const line = linesOf(this.#bytes).findLast((one) => one.trim() !== '')
    return line === undefined ? '' : wordsOf(line.trim())
  }
}

function linesOf(bytes: Buffer): string[] {
  const text = stripVTControlCharacters(bytes.toString('utf8'))
  return text.split(/[\r\n]+/).map((line) => line.replace(/\p{Cc}/gu, '').slice(-LINE_LIMIT))
}
