/** Writes rows as text (RFC 4180), for programs and for spreadsheets. */
import { stringify } from 'csv-stringify/sync'

/** Without it Excel reads a text in the system's old code page. */
export const BOM = '\uFEFF'

/**
 * A line's end, or a space at either end of a cell, survives only in quotes. Characters that another program
 * may use as separator are quoted too, whichever one was chosen.
 */
const QUOTED = /[\r\n;,\t|]|^\s|\s$/

/** Returns the lines of these rows. */
export function linesOf(rows: readonly (readonly string[])[], separator: string): string {
  return stringify([...rows] as string[][], {
    delimiter: separator,
    record_delimiter: '\r\n',
    quoted_match: QUOTED,
  })
}

/** Returns the row that names the columns: the first name has a `#` before it. */
export function headerOf(columns: readonly string[]): string[] {
  return columns.map((name, index) => (index === 0 ? `#${name}` : name))
}
