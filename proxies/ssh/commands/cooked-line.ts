/**
 * A line as a program without a line editor would receive it: its terminal edits the line (termios, ICANON),
 * so only Backspace, ^U, ^W and ^V act, and every other key is part of the line. Parsed byte by byte,
 * whatever the keys mean elsewhere. For the rules only: the line may be a password, so it is neither stored
 * nor reported.
 */
import { Buffer } from 'node:buffer'
import { MAX_GUESSED } from './line-guess.ts'

const ETX = 0x03
const EOT = 0x04
const BS = 0x08
const LF = 0x0a
const CR = 0x0d
const NAK = 0x15
const SYN = 0x16
const ETB = 0x17
const SPACE = 0x20
const DEL = 0x7f

export class CookedLine {
  #bytes: number[] = []
  /** Number of bytes sent to the program by ^D: they can no longer be erased. */
  #handedOn = 0
  #isLiteral = false
  #isEnd = false

  get text(): string {
    return Buffer.from(this.#bytes).toString('utf8').trim()
  }

  /** Whether the last key was ^D: another ^D ends the input, and with it the line. */
  get isEnd(): boolean {
    return this.#isEnd
  }

  type(byte: number): void {
    const isLiteral = this.#isLiteral
    this.#isLiteral = this.#isEnd = false
    if (byte === CR || byte === LF || byte === ETX) this.#clear()
    else if (isLiteral) this.#append(byte)
    else if (byte === EOT) {
      this.#handedOn = this.#bytes.length
      this.#isEnd = true
    } else if (byte === SYN) this.#isLiteral = true
    else if (byte === DEL || byte === BS) this.#erase()
    else if (byte === NAK) this.#bytes.length = this.#handedOn
    else if (byte === ETB) this.#eraseWord()
    else this.#append(byte)
  }

  #append(byte: number): void {
    if (this.#bytes.length < MAX_GUESSED) this.#bytes.push(byte)
  }

  #erase(): void {
    while (this.#last !== undefined) {
      const byte = this.#bytes.pop()!
      if ((byte & 0xc0) !== 0x80) return
    }
  }

  #eraseWord(): void {
    while (this.#last === SPACE) this.#bytes.pop()
    while (this.#last !== undefined && this.#last !== SPACE) this.#bytes.pop()
  }

  /** The last byte that can be erased. */
  get #last(): number | undefined {
    return this.#bytes.length > this.#handedOn ? this.#bytes.at(-1) : undefined
  }

  #clear(): void {
    this.#bytes = []
    this.#handedOn = 0
  }
}
