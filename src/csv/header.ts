/** The first row of a table: `#` and the names of its columns, in any order. */
import { closest } from 'fastest-levenshtein'
import { CsvError } from './error.ts'

export interface Heading {
  name: string
  /** Number of the column, from 1. */
  column: number
}
export interface HeaderProblem {
  message: string
  column?: number
}

/** More columns than any type has; Excel saves empty ones if a cell far to the right was ever used. */
export const MAX_COLUMNS = 1000

/**
 * Returns the columns that a header names, each known one at most once. Columns without a name are left out.
 * @param required names that every row needs
 * @throws CsvError if this is not a header
 */
export function headingsOf(
  cells: readonly string[],
  known: readonly string[],
  required: readonly string[],
): { headings: Heading[]; problems: HeaderProblem[] } {
  const first = cells[0]?.trim() ?? ''
  if (!first.startsWith('#')) {
    throw new CsvError(
      `expected a header: "#" and the names of the columns, such as #${required.join(';')}; is the separator right?`,
      { row: 1, column: 1 },
    )
  }
  const headings: Heading[] = []
  const problems: HeaderProblem[] = []
  if (MAX_COLUMNS < cells.length) throw new CsvError(`there are more than ${MAX_COLUMNS} columns`, { row: 1 })
  for (const [index, cell] of cells.entries()) {
    const name = (index === 0 ? first.slice(1) : cell).trim()
    const column = index + 1
    if (name === '') continue
    if (!known.includes(name)) problems.push({ column, message: unknown(name, known) })
    else if (headings.some((one) => one.name === name))
      problems.push({ column, message: `the column "${name}" is there twice` })
    else headings.push({ name, column })
  }
  for (const name of required) {
    if (!headings.some((one) => one.name === name))
      problems.push({ message: `the column "${name}" is missing` })
  }
  return { headings, problems }
}

function unknown(name: string, known: readonly string[]): string {
  const shown = name.length > 60 ? `${name.slice(0, 59)}…` : name
  return `there is no column ${JSON.stringify(shown)}; the nearest is "${closest(shown, [...known])}"`
}
