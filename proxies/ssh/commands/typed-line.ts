/** A line of input from its first key on, and where it began on the screen. */
import { Buffer } from 'node:buffer'
import type { Edit } from './keys.ts'
import { LineGuess } from './line-guess.ts'
import { isPrompt } from './prompt.ts'
import type { Screen } from './screen.ts'

/** Bytes of a line that are compared with what the screen shows; a longer line is taken from the screen alone. */
const MAX_TYPED = 1024

/** The screen when the first key of a line came. */
export interface Mark {
  /** `Screen.gone` and the row in which the line begins. */
  row: number
  /** What stands before the cursor. */
  prompt: string
  /** What stands behind it, without spaces: a prompt at the right margin. */
  right: string
  /** A line editor had asked for bracketed paste. */
  byEditor: boolean
}

export class TypedLine {
  readonly mark: Mark
  /** The line before it had not been taken yet: the mark says little. */
  isAhead = false
  /** Keys but for the Return at its end. */
  keys = 0
  /** It has line ends of its own, from a paste. */
  hasNewlines = false
  /** Milliseconds: when its last key came. */
  lastKeyAt = 0
  /** How many pieces of output had come by its first key, and by its last. */
  readonly firstOutputs: number
  /** How many characters were written by its first key. */
  readonly firstWritten: number
  outputs: number
  /** Characters that were written until Return. */
  written = 0
  /** Return was answered by a line feed, and nothing before that; undefined: it was not answered yet. */
  isReturnEchoed: boolean | undefined
  /** The terminal had a size with which lines cannot be read. */
  isBlind = false
  /** It was told as one that could not be read. */
  isTold = false
  /** Keys that seemed to be none have put it there: only the screen tells it. */
  isFound = false
  /** What a terminal without a line editor makes of its keys, where nothing was shown of them. A secret as `guess` is. */
  cooked: string | undefined
  /** Line feeds since Return. */
  feeds = 0
  /** Its text when Return was judged, if it was. */
  judged: string | undefined
  /** undefined: it was edited, so its keys do not tell its text. */
  #bytes: number[] | undefined = []
  #guess = new LineGuess()
  #hasText = false

  constructor(screen: Screen, outputs: number) {
    this.firstOutputs = this.outputs = outputs
    this.firstWritten = screen.written
    const { cursor } = screen
    const span = screen.span(screen.row)
    const prompt = screen.text(span, cursor)
    this.mark = {
      row: screen.gone + span.first,
      prompt,
      right: screen.text(span).slice(prompt.length).trim(),
      byEditor: screen.bracketedPaste,
    }
  }

  /** What was typed, when the keys tell it. */
  get text(): string | undefined {
    return this.#bytes && Buffer.from(this.#bytes).toString('utf8').trimEnd()
  }

  /** What its keys say, edited as line editors do; undefined: they do not tell. Never to be shown: it may be a secret. */
  get guess(): string | undefined {
    return this.#guess.text
  }

  /** Nothing was typed: it has no keys, or those do nothing anywhere. */
  get isEmpty(): boolean {
    return this.keys === 0 || (this.guess === '' && (!this.#hasText || !this.cooked))
  }

  /** It begins where a line editor, or a shell, waits for one. */
  get isAtPrompt(): boolean {
    return this.mark.byEditor || isPrompt(this.mark.prompt)
  }

  /** Nothing was shown from its first key to Return. */
  get isQuiet(): boolean {
    return this.firstOutputs === this.outputs
  }

  /** It is not what was typed, nor known but by the screen. */
  find(): void {
    this.isFound = true
    this.edit('unknown')
  }

  /** Its keys were typed before its prompt was there. */
  follow(ahead: TypedLine): void {
    this.keys = ahead.keys
    this.isAhead = true
    this.#hasText = ahead.#hasText
    this.#guess = ahead.#guess
    this.#bytes = undefined
  }

  type(byte: number): void {
    this.keys++
    this.#hasText = true
    this.#guess.type(byte)
    if (this.#bytes && this.#bytes.push(byte) > MAX_TYPED) this.#bytes = undefined
  }

  /** Backspace: takes away the last character. */
  erase(): void {
    this.keys++
    this.#guess.erase()
    if (!this.#bytes) return
    while (this.#bytes.length > 0) {
      const byte = this.#bytes.pop()!
      if ((byte & 0xc0) !== 0x80) return
    }
  }

  edit(edit: Edit): void {
    this.keys++
    this.#guess.edit(edit)
    this.#bytes = undefined
  }
}
