/** Rows as text (RFC 4180), for programs and for spreadsheets. */
import { stringify } from 'csv-stringify/sync'

/** Excel takes a text without it for one in the system's old code page. */
export const BOM = '\uFEFF'

/**
 * A line's end or a space at either end of a cell survives only in quotes; and what another program may take for a
 * separator is in quotes whichever one was asked for.
 */
const QUOTED = /[\r\n;,\t|]|^\s|\s$/

/** The lines of these rows. */
export function linesOf(rows: readonly (readonly string[])[], separator: string): string {
  return stringify([...rows] as string[][], {
    delimiter: separator,
    record_delimiter: '\r\n',
    quoted_match: QUOTED,
  })
}

/** The row that names the columns: the first name has a `#` before it. */
export function headerOf(columns: readonly string[]): string[] {
  return columns.map((name, index) => (index === 0 ? `#${name}` : name))
}
