/** Reads a table's text as bodies of the API, one per row; makes all checks that need no store. */
import { valueIn } from '../../csv/cells.ts'
import { CellError, CsvError } from '../../csv/error.ts'
import { type Heading, headingsOf } from '../../csv/header.ts'
import { type Row, readRows } from '../../csv/reader.ts'
import { MAX_IMPORT_ROWS } from '../http/limits.ts'
import { LATER_FIELDS } from '../schema/later.ts'
import { type Column, putAt } from './columns.ts'
import { Problems } from './problems.ts'
import { type Body, keyOf, type Member, type Table } from './tables.ts'

/** A readable row. */
export interface Entry {
  row: number
  member: Member
  /** Parameters for the path of the resource. */
  params: { device?: string }
  body: Body
}

interface Placed {
  column: Column
  at: number
}

export class TableReader {
  readonly problems = new Problems()
  readonly #table: Table
  readonly #seen = new Map<string, number>()
  #placed: readonly Placed[] = []

  constructor(table: Table) {
    this.#table = table
  }

  /** The place of each column, once the header has been read. */
  get columns(): ReadonlyMap<string, number> {
    return new Map(this.#placed.map(({ column, at }) => [column.name, at]))
  }

  /**
   * Yields the readable rows; `problems` collects the errors of the others.
   * @throws ApiError `invalid_csv` if the header is unusable, and any error of `source`
   */
  async *entries(source: AsyncIterable<Uint8Array>, separator: string): AsyncGenerator<Entry> {
    const { problems } = this
    let rows = -1
    try {
      for await (const row of readRows(source, separator)) {
        rows++
        if (rows === 0) {
          this.#placed = placedColumns(this.#table, row, problems)
          if (!problems.isEmpty) throw problems.error()
          continue
        }
        if (MAX_IMPORT_ROWS < rows) {
          const message = `more than ${MAX_IMPORT_ROWS} rows: cut the table into several`
          throw new CsvError(message, { row: row.row })
        }
        const entry = entryOf(this.#table, row, this.#placed, problems)
        if (entry && this.#isFirst(entry)) yield entry
      }
      if (rows === -1) throw new CsvError('there is nothing in it: a header is expected', { row: 1 })
    } catch (error) {
      if (!(error instanceof CsvError)) throw error
      problems.add({ ...error.place, message: error.message })
    }
  }

  /** Rejects a second row for the same object, because rows must not depend on each other. */
  #isFirst(entry: Entry): boolean {
    const key = keyOf(this.#table, entry.body, entry.params.device)
    const first = this.#seen.get(key)
    if (first !== undefined) this.problems.add({ row: entry.row, message: sameAs(first) })
    else this.#seen.set(key, entry.row)
    return first === undefined
  }
}

function placedColumns(table: Table, row: Row, problems: Problems): Placed[] {
  if (row.row !== 1) throw new CsvError('expected the header in the first row', { row: 1 })
  const names = table.columns.map(({ name }) => name)
  const { headings, problems: wrong } = headingsOf(row.cells, names, table.required)
  const later = LATER_FIELDS[(table.single ?? table.ofDevice)?.resource.type ?? ''] ?? []
  const isLater = (column: number | undefined) =>
    column !== undefined &&
    later.includes((row.cells[column - 1] ?? '').replace(/^#/, '').trim().replace('.', '/'))
  for (const { column, message } of wrong) {
    const shown = isLater(column) ? 'this column is not enforced yet: leave it out' : message
    problems.add({ row: 1, ...(column === undefined ? {} : { column }), message: shown })
  }
  const columnOf = ({ name }: Heading) => table.columns.find((column) => column.name === name)!
  return headings.map((heading) => ({ column: columnOf(heading), at: heading.column }))
}

/** Returns the entry, or undefined after adding the row's errors to `problems`. */
function entryOf(
  table: Table,
  { row, cells }: Row,
  placed: readonly Placed[],
  problems: Problems,
): Entry | undefined {
  let isGood = true
  const fault = (column: number | undefined, field: string | undefined, message: string) => {
    isGood = false
    problems.add({
      row,
      ...(column === undefined ? {} : { column }),
      ...(field === undefined ? {} : { field }),
      message,
    })
  }
  const body: Body = {}
  for (const { column, at } of placed) {
    try {
      const value = valueIn(column.kind, cells[at - 1] ?? '')
      if (value !== undefined) putAt(body, column.path, value)
    } catch (error) {
      if (!(error instanceof CellError)) throw error
      fault(at, column.name, error.message)
    }
  }
  for (const [index, cell] of cells.entries()) {
    if (cell !== '' && !placed.some(({ at }) => at === index + 1)) {
      fault(index + 1, undefined, 'the header has no name for this column')
    }
  }
  const place = (name: string) => placed.find(({ column }) => column.name === name)?.at
  for (const name of table.required) {
    if (body[name] === undefined || body[name] === '') fault(place(name), name, 'this cell must not be empty')
  }
  const flaw = table.finish?.(body)
  if (flaw) fault(place(flaw.column), flaw.column, flaw.message)
  if (!isGood) return undefined
  return { row, ...homeOf(table, body), body }
}

const NO_DEVICE = {}

/** Returns the resource of the row; the device to which it belongs is no field of the body. */
function homeOf(table: Table, body: Body): Pick<Entry, 'member' | 'params'> {
  const { single, ofDevice } = table
  if (!ofDevice) return { member: single!, params: NO_DEVICE }
  const device = body['device'] as string | undefined
  delete body['device']
  if (device === undefined) return { member: single ?? ofDevice, params: NO_DEVICE }
  return { member: ofDevice, params: { device } }
}

export function sameAs(row: number): string {
  return `row ${row} is about the same object`
}
