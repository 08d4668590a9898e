/** Carries the rows of a store's tables from one side to another, some in each step, and then the counters. */
import { StoreError } from '../engine/errors.ts'
import { keyText } from './compare.ts'
import { rowsAfter, type Side } from './side.ts'
import { LOG, type Table } from './tables.ts'
import { keyOf, type Row, sizeOf, type Value } from './values.ts'

/** Rows of a step: as many as have about so many bytes, by those before. */
const BATCH_BYTES = 2 * 1024 * 1024
const MIN_ROWS = 16
const MAX_ROWS = 5000

/** A place that has been reached: a table, and the key of its last row at the destination. */
export interface Reached {
  table: string
  after: readonly Value[]
}

export interface CarryOptions {
  /** Where an earlier run has stopped. Absent: at the beginning, with empty tables at the destination. */
  from?: Reached | undefined
  stored: (row: Row, table: Table) => Row
  /** Does the work at the destination, which reaches that place if rows are written: in one transaction, for example. */
  step: (work: () => Promise<void>, reached?: Reached) => Promise<void>
  /** Called after each step with the rows of the table in this run; the copy waits for it. */
  onRows?: (table: string, rows: number) => void | Promise<void>
}

/** Carries all tables, in their order. */
export async function carryRows(
  source: Side,
  destination: Side,
  tables: readonly Table[],
  options: CarryOptions,
): Promise<void> {
  const { from, step } = options
  const first = from ? tables.findIndex(({ name }) => name === from.table) : 0
  for (const table of tables.slice(Math.max(first, 0))) await carryTable(source, destination, table, options)
  for (const table of tables) {
    if (!table.isCounted) continue
    // It may be ahead of all rows that are left.
    const counter = await source.counter(table)
    await step(() => destination.setCounter(table, counter))
  }
}

async function carryTable(
  source: Side,
  destination: Side,
  table: Table,
  { from, stored, step, onRows }: CarryOptions,
): Promise<void> {
  const begin = table.name === from?.table ? from.after : undefined
  // Removes the rows that triggers of the copied tables have noted.
  if (table.name === LOG && !begin) await step(() => destination.clear([table]))
  let limit = MIN_ROWS
  let copied = 0
  let rows = await rowsAfter(source, table, begin, limit)
  for (let last = rows.at(-1); last; last = rows.at(-1)) {
    const after = keyOf(table, last)
    const written = rows.map((row) => stored(row, table))
    limit = limitAfter(rows)
    copied += rows.length
    const writing = step(() => destination.insert(table, written), { table: table.name, after })
    const [next] = await Promise.all([rowsAfter(source, table, after, limit), writing])
    await onRows?.(table.name, copied)
    rows = next
  }
}

/** Returns the number of rows to read after those. */
function limitAfter(rows: readonly Row[]): number {
  const bytes = rows.reduce((sum, row) => sum + sizeOf(row), 1)
  const fitting = Math.floor((BATCH_BYTES * rows.length) / bytes)
  // Not many more at once: the next ones may be larger.
  return Math.max(MIN_ROWS, Math.min(MAX_ROWS, fitting, rows.length * 8))
}

/**
 * Returns a row as the side can store it: as PostgreSQL's repositories do, without U+0000. `onReplaced` is called for
 * each text that is changed.
 * @throws StoreError if it is one of the audit log, whose chain would break
 */
export function storedIn(side: Side, row: Row, table: Table, onReplaced?: () => void): Row {
  if (side.hasZeros) return row
  const hasZero = (value: Value) => typeof value === 'string' && value.includes('\0')
  if (!row.some(hasZero)) return row
  if (table.name === 'audit')
    throw new StoreError(
      `row ${keyText(table, row)} of the audit log has the character U+0000, which no broker writes and PostgreSQL cannot store`,
    )
  return row.map((value) => {
    if (typeof value !== 'string' || !hasZero(value)) return value
    onReplaced?.()
    return value.replaceAll('\0', '\ufffd')
  })
}

/** An error ends the connection with the copy, and what it has not committed with it. */
export async function transaction(side: Side, work: () => Promise<unknown>): Promise<void> {
  await side.begin([])
  await work()
  await side.commit()
}
