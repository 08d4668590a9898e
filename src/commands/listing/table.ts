/**
 * Prints what a listing has found: as JSON, one object a line; as a table that fits the terminal; and as words in a line
 * for a pipe. The values come from users and targets.
 */
import { jsonLine } from '../../../recordings/decode/frames/payload.ts'
import { harmless } from '../../../recordings/decode/terminal/filter.ts'

export interface Column<T> {
  title: string
  value: (one: T) => string
}

/** Characters of a column that is cut, at least. */
const LEAST = 8
const SPACES = '  '

export interface Output {
  write(text: string): unknown
  isTTY?: boolean
  columns?: number
}

const lengthOf = (text: string) => [...text].length

function fitted(text: string, width: number): string {
  const characters = [...text]
  if (characters.length <= width) return text.padEnd(text.length + width - characters.length)
  return `${characters.slice(0, width - 1).join('')}…`
}

/** Returns the widths of columns: the widest one is cut until all fit. */
function widthsOf(wanted: readonly number[], room: number): number[] {
  const widths = [...wanted]
  const all = () => widths.reduce((sum, width) => sum + width, SPACES.length * (widths.length - 1))
  while (all() > room) {
    const widest = widths.indexOf(Math.max(...widths))
    if ((widths[widest] ?? 0) <= LEAST) break
    widths[widest]! -= Math.min(all() - room, widths[widest]! - LEAST, 8)
  }
  return widths
}

/** Returns the table as lines. */
export function tableOf<T>(
  found: readonly T[],
  columns: readonly Column<T>[],
  { isTTY, columns: room = 80 }: Output,
): string[] {
  const rows = found.map((one) => columns.map(({ value }) => harmless(value(one))))
  if (isTTY !== true) return rows.map((row) => row.join(' '))
  if (rows.length === 0) return []
  const all = [columns.map(({ title }) => title), ...rows]
  const wanted = columns.map((_, at) => Math.max(...all.map((row) => lengthOf(row[at]!))))
  const widths = widthsOf(wanted, room)
  return all.map((row) =>
    row
      .map((text, at) => fitted(text, widths[at]!))
      .join(SPACES)
      .trimEnd(),
  )
}

export function printListing<T extends object>(
  found: readonly T[],
  columns: readonly Column<T>[],
  isJson: boolean,
  output: Output = process.stdout,
): void {
  const lines = isJson
    ? found.map((one) => jsonLine(one))
    : tableOf(found, columns, output).map((line) => `${line}\n`)
  output.write(lines.join(''))
}
