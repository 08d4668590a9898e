/** Errors of a table, collected so that one answer reports all of them. */
import { CsvError } from '../../csv/error.ts'
import { ApiError, ERRORS, type ErrorDetail } from '../http/errors.ts'
import { apiErrorOf } from '../http/failures.ts'
import { MAX_IMPORT_PROBLEMS } from '../http/limits.ts'

/** Errors of the broker rather than of the row: they end the import unchanged. */
const NOT_OF_A_ROW: readonly string[] = ['internal', 'busy', 'audit_unavailable']

export class Problems {
  readonly #details: ErrorDetail[] = []
  #count = 0

  get isEmpty(): boolean {
    return this.#count === 0
  }

  add(detail: ErrorDetail): void {
    this.#count++
    if (this.#details.length < MAX_IMPORT_PROBLEMS) this.#details.push(detail)
  }

  /**
   * Adds an error of a row, at the columns of the invalid fields.
   * @param columns the place of each column that the table has
   * @param cellOf what a field was in the table
   * @throws the error itself if it is not the row's
   */
  addError(
    error: unknown,
    row: number,
    columns: ReadonlyMap<string, number>,
    cellOf: (field: string) => string,
  ): void {
    const known = error instanceof CsvError ? error : apiErrorOf(error)
    if (known instanceof CsvError) {
      this.add({ ...known.place, message: known.message })
      return
    }
    if (NOT_OF_A_ROW.includes(known.code)) throw error
    const details = known.details.length > 0 ? known.details : [{ message: ERRORS[known.code].description }]
    for (const { field, message } of details) {
      const name = field === undefined ? undefined : columnName(cellOf(field), columns)
      const column = name === undefined ? undefined : columns.get(name)
      this.add({
        row,
        ...(column === undefined ? {} : { column }),
        ...(field === undefined ? {} : { field: name ?? field }),
        message,
      })
    }
  }

  /** Returns all of them as one error, in the order of the rows. */
  error(): ApiError {
    const details = this.#details.toSorted((a, b) => (a.row ?? 0) - (b.row ?? 0))
    const more = this.#count - details.length
    if (more > 0) details.push({ message: `and ${more} more` })
    return new ApiError('invalid_csv', details)
  }
}

/** `session/accounts/3` → `session.accounts`, `credentials/0/password` → `password`. */
function columnName(field: string, columns: ReadonlyMap<string, number>): string | undefined {
  const parts = field.split('/').filter((part) => !/^\d+$/.test(part))
  return [parts.join('.'), parts[0], parts.at(-1)].find((name) => name !== undefined && columns.has(name))
}
