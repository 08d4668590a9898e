/**
 * The SQL function `is_like(text, parts)`, by which `~` of a search is asked. SQLite's own LIKE takes the text's
 * length times the pattern's, for each row, on the thread that serves everybody; this one takes their sum, and a
 * statement that looks at too much text is stopped.
 */
import type { DatabaseSync } from 'node:sqlite'
import { isLike } from '../../search/evaluate.ts'
import { lowerAscii } from '../../search/fields.ts'
import { SearchError } from '../../search/grammar.ts'

/** Characters that one statement may look at: about half a second. 100,000 short texts are a fifth of it. */
export const MAX_LOOKED_AT = 50_000_000
/** What a text costs beside its characters. */
const PER_TEXT = 100

/** For a statement, and begun anew with the next. */
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

  /** Null, as SQL has it, for what is no text. @throws SearchError */
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
