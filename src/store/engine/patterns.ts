/**
 * The SQL function `is_like(text, parts)` for the operator `~` of a search. SQLite's own LIKE needs time for
 * the product of the text's and the pattern's length, for each row, on the main thread; this function needs
 * their sum, and stops a statement that reads too much text.
 */
import type { DatabaseSync } from 'node:sqlite'
import { isLike } from '../../search/evaluate.ts'
import { lowerAscii } from '../../search/fields.ts'
import { SearchError } from '../../search/grammar.ts'

/** Limit of characters read by one statement: about half a second. 100,000 short texts are a fifth of it. */
export const MAX_LOOKED_AT = 50_000_000
/** Cost of a text beside its characters. */
const PER_TEXT = 100

/** Counts for one statement, and is reset for the next. */
export class Patterns {
  #lookedAt = 0
  readonly #read = new Map<string, readonly string[]>()

  constructor(database: DatabaseSync) {
    database.function('is_like', { deterministic: true }, (text, parts) => this.#isLike(text, parts))
  }

  beginStatement(): void {
    this.#lookedAt = 0
    this.#read.clear()
  }

  /** Returns null, as SQL does, if the value is not a text. @throws SearchError */
  #isLike(text: unknown, parts: unknown): number | null {
    if (typeof text !== 'string' || typeof parts !== 'string') return null
    this.#lookedAt += text.length + PER_TEXT
    if (this.#lookedAt > MAX_LOOKED_AT)
      throw new SearchError('value', 0, 'a narrower search', '"~" on more text than can be looked at in time')
    let list = this.#read.get(parts)
    if (!list) {
      list = JSON.parse(parts) as string[]
      this.#read.set(parts, list)
    }
    return isLike(lowerAscii(text), list) ? 1 : 0
  }
}
