/**
 * The SQL functions of searches.
 *
 * `is_like(text, parts)` is for the operator `~`. SQLite's own LIKE needs time for the product of the text's and
 * the pattern's length, for each row, on the main thread; this function needs their sum, and stops a statement
 * that reads too much text.
 *
 * `read_here()` is true for each row that a statement reads, and stops the statement at too many of them: SQLite
 * cannot be interrupted, and the event loop waits for it.
 */
import type { DatabaseSync } from 'node:sqlite'
import { isLike } from '../../search/evaluate.ts'
import { lowerAscii } from '../../search/fields.ts'
import { SearchError } from '../../search/grammar.ts'
import { StoreError } from './errors.ts'

/** Limit of characters read by one statement: about half a second. 100,000 short texts are a fifth of it. */
export const MAX_LOOKED_AT = 50_000_000
/** Limits of a statement with `read_here()`, some ten milliseconds each. */
export const MAX_ROWS_HERE = 5000
const MAX_LOOKED_AT_HERE = 1_000_000
/** Cost of a text beside its characters. */
const PER_TEXT = 100

/** The statement reads too much for the event loop. */
export class LongStatementError extends StoreError {
  override readonly name = 'LongStatementError'

  constructor() {
    super('the statement reads too many rows')
  }
}

/** Counts for one statement, and is reset for the next. */
export class Patterns {
  #lookedAt = 0
  #rowsHere = 0
  readonly #read = new Map<string, readonly string[]>()

  constructor(database: DatabaseSync) {
    database.function('is_like', { deterministic: true }, (text, parts) => this.#isLike(text, parts))
    // Not deterministic: otherwise SQLite would call it once.
    database.function('read_here', () => this.#readHere())
  }

  beginStatement(): void {
    this.#lookedAt = 0
    this.#rowsHere = 0
    this.#read.clear()
  }

  #readHere(): number {
    if (++this.#rowsHere > MAX_ROWS_HERE) throw new LongStatementError()
    return 1
  }

  /** Returns null, as SQL does, if the value is not a text. @throws SearchError */
  #isLike(text: unknown, parts: unknown): number | null {
    if (typeof text !== 'string' || typeof parts !== 'string') return null
    this.#lookedAt += text.length + PER_TEXT
    if (this.#rowsHere > 0 && this.#lookedAt > MAX_LOOKED_AT_HERE) throw new LongStatementError()
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
