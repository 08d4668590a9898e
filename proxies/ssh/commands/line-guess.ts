/**
 * A line reconstructed from its keys alone, as a line editor reads them. For the rules, where the screen does
 * not show the line. The line may be a password, so it is neither stored nor reported.
 */
import { Buffer } from 'node:buffer'
import type { Edit } from './keys.ts'

/** Longest line in bytes. */
export const MAX_GUESSED = 16 * 1024
const SPACE = 0x20

export class LineGuess {
  #before: number[] = []
  #after: number[] = []
  /** Steps back in the history; 0 is the user's own line. */
  #back = 0
  #isLost = false
  /** Set if the cursor's place in an unknown text is unknown. */
  #isAstray = false

  /** Returns the line, or undefined if keys inserted unknown text. */
  get text(): string | undefined {
    if (this.#isLost || this.#back > 0) return undefined
    return Buffer.from([...this.#before, ...this.#after])
      .toString('utf8')
      .trim()
  }

  type(byte: number): void {
    if (this.#isUnknown() || this.#before.length + this.#after.length >= MAX_GUESSED) this.#isLost = true
    else this.#before.push(byte)
  }

  /** Erases the character before the cursor. */
  erase(): void {
    if (this.#isUnknown()) return
    this.#dropWhile(this.#before, isRest)
    this.#before.pop()
  }

  edit(edit: Edit): void {
    switch (edit) {
      case 'nothing':
        return
      case 'unknown':
        this.#isLost = true
        return
      case 'up':
        this.#back++
        return
      case 'down':
        this.#back = Math.max(0, this.#back - 1)
        return
      case 'kill line':
        if (this.#isAstray) return
        this.#isLost = false
        this.#back = 0
        this.#before = []
        return
      default:
        if (!this.#isUnknown()) this.#change(edit)
        else if (edit !== 'right' && edit !== 'end') this.#isAstray = true
    }
  }

  /** Returns whether the text is unknown. A change to a line of the history makes it so for good. */
  #isUnknown(): boolean {
    if (this.#back > 0) this.#isLost = true
    return this.#isLost
  }

  #change(edit: Edit): void {
    switch (edit) {
      case 'kill rest':
        this.#after = []
        return
      case 'kill word':
        this.#dropWhile(this.#before, (byte) => byte === SPACE)
        this.#dropWhile(this.#before, (byte) => byte !== SPACE)
        return
      case 'delete':
        this.#after.shift()
        while (isRest(this.#after[0])) this.#after.shift()
        return
      case 'left':
        this.#step(this.#before, this.#after)
        return
      case 'right':
        do {
          const byte = this.#after.shift()
          if (byte !== undefined) this.#before.push(byte)
        } while (isRest(this.#after[0]))
        return
      case 'home':
        this.#after.unshift(...this.#before.splice(0))
        return
      case 'end':
        this.#before.push(...this.#after.splice(0))
    }
  }

  #step(from: number[], to: number[]): void {
    for (let byte = from.pop(); byte !== undefined; byte = from.pop()) {
      to.unshift(byte)
      if (!isRest(byte)) return
    }
  }

  #dropWhile(bytes: number[], matches: (byte: number) => boolean): void {
    while (bytes.length > 0 && matches(bytes.at(-1)!)) bytes.pop()
  }
}

/** Returns whether a byte continues a UTF-8 character. */
function isRest(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}
