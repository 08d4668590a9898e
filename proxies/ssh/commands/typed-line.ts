/** A line of input from its first key on, and its beginning on the screen. */
import { Buffer } from 'node:buffer'
import type { Edit } from './keys.ts'
import { LineGuess } from './line-guess.ts'
import { isPrompt } from './prompt.ts'
import type { Screen } from './screen.ts'

/** Longest line in bytes that is compared with the screen; a longer one is read from the screen alone. */
const MAX_TYPED = 1024

/** The screen at the first key of a line. */
export interface Mark {
  /** `Screen.gone` plus the row in which the line begins. */
  row: number
  /** The text before the cursor. */
  prompt: string
  /** The text behind the cursor, without spaces: a prompt at the right margin. */
  right: string
  /** Set if a line editor had turned on bracketed paste. */
  byEditor: boolean
}

export class TypedLine {
  readonly mark: Mark
  /** Set if the line before was not yet accepted: the mark is unreliable. */
  isAhead = false
  /** Number of keys, without the Return at the end. */
  keys = 0
  /** Set if a paste has put line ends into the line. */
  hasNewlines = false
  /** Time of the last key, in milliseconds. */
  lastKeyAt = 0
  /** Number of output chunks by the first key, and by the last key. */
  readonly firstOutputs: number
  /** Number of characters written by the first key. */
  readonly firstWritten: number
  outputs: number
  /** Number of characters written by Return. */
  written = 0
  /** Whether the first reply to Return was a line feed. Undefined until there is a reply. */
  isReturnEchoed: boolean | undefined
  /** Set if lines cannot be read at the terminal's size. */
  isBlind = false
  /** Set if the line was reported as unread. */
  isTold = false
  /** Set if input without keys has put the line there: only the screen shows it. */
  isFound = false
  /** The line as read without a line editor, if nothing of it was shown. As secret as `guess`. */
  cooked: string | undefined
  /** Line feeds since Return. */
  feeds = 0
  /** The text checked at Return, if any. */
  judged: string | undefined
  /** Undefined once the line is edited: its keys no longer determine its text. */
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

  /** The typed text, or undefined if the keys do not determine it. */
  get text(): string | undefined {
    return this.#bytes && Buffer.from(this.#bytes).toString('utf8').trimEnd()
  }

  /**
   * The line by its keys, edited as line editors do, or undefined if the keys do not determine it. Never show
   * it: it may be a secret.
   */
  get guess(): string | undefined {
    return this.#guess.text
  }

  /** Whether the line has no keys, or only keys without effect. */
  get isEmpty(): boolean {
    return this.keys === 0 || (this.guess === '' && (!this.#hasText || !this.cooked))
  }

  /** Whether the line begins at the prompt of a line editor or shell. */
  get isAtPrompt(): boolean {
    return this.mark.byEditor || isPrompt(this.mark.prompt)
  }

  /** Whether nothing was shown from the first key to Return. */
  get isQuiet(): boolean {
    return this.firstOutputs === this.outputs
  }

  /** Marks the line as known from the screen alone. */
  find(): void {
    this.isFound = true
    this.edit('unknown')
  }

  /** Continues a line whose keys were typed before its prompt was shown. */
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

  /** Backspace: removes the last character. */
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
