/** Rates how sure the reading of a line is. reader.ts defines `certain`, `likely` and `uncertain`. */
import { isContinuation, isPrompt } from './prompt.ts'
import type { Reading } from './reading.ts'
import type { Screen } from './screen.ts'
import type { TypedLine } from './typed-line.ts'

/** Number of prompts remembered. */
export const MAX_PROMPTS = 8

export class Certainty {
  /** Prompts of lines read earlier. */
  readonly #seen = new Set<string>()
  /** Set if output was skipped, or the size changed, since the last line read. */
  skipped = false
  resized = false

  /** Returns the confidence, or undefined if it is no line. */
  of(line: TypedLine, { text, prompt, doubts }: Reading, screen: Screen): Confidence | undefined {
    const continues = isContinuation(prompt)
    const isKnown = continues || isPrompt(prompt) || (prompt === line.mark.prompt && line.mark.byEditor)
    // In programs that draw a whole screen, text without a prompt before it can be anything.
    if (screen.addressed && !isKnown) return undefined
    let sum = doubts
    if (continues) sum++
    if (!isKnown) sum += prompt !== '' && this.#seen.has(prompt) ? 1 : 2
    if (line.isAhead || line.isFound) sum++
    if (this.skipped) sum++
    if (this.resized) sum++
    if (screen.addressed || line.isBlind) sum += 2
    // The line may continue in the next row.
    if (screen.isFilled && line.text === undefined) sum++
    if (line.text !== undefined && !line.hasNewlines && line.text !== text) sum++
    if (isKnown) this.skipped = this.resized = false
    this.#remember(prompt)
    return sum === 0 ? 'certain' : sum === 1 ? 'likely' : 'uncertain'
  }

  #remember(prompt: string): void {
    if (prompt === '') return
    this.#seen.delete(prompt)
    this.#seen.add(prompt)
    if (this.#seen.size > MAX_PROMPTS) for (const oldest of this.#seen) return void this.#seen.delete(oldest)
  }
}

export type Confidence = 'certain' | 'likely' | 'uncertain'
