/** Tables of links: each row joins two objects, or a group and a target. */
import { sql } from 'kysely'
import { insertRow, rowsBy } from './engine/kept-rows.ts'
import type { Schema } from './migrations/schema.ts'
import type { Tx } from './query.ts'

/** Rows that one statement writes. */
const TOGETHER = 64

export type Linked =
  | 'user_group_members'
  | 'user_group_timeframes'
  | 'target_group_sessions'
  | 'target_group_logins'
  | 'target_group_retrievals'
  | 'api_key_users'
  | 'api_key_groups'
  | 'authorization_approvers'
  | 'person_mappings'
  | 'notification_user_groups'
  | 'notification_target_groups'

type Row = Readonly<Record<string, string>>

/**
 * Makes `rows` the only rows of the table with the columns `of`. Leaves those that are there already: each row that
 * is written is a change of rights, for which sessions are reviewed.
 */
export async function setLinks<T extends Linked>(
  tx: Tx,
  table: T,
  of: Partial<Schema[T]>,
  rows: readonly Omit<Schema[T], keyof typeof of>[],
): Promise<void> {
  const links = sql.table(table)
  const before = await rowsBy(tx, table, of)
  const [old, wanted] = [byKey(before as Row[]), byKey(rows.map((row) => ({ ...row, ...of }) as Row))]
  for (const some of pieces(without(old, wanted))) {
    await sql`delete from ${links} where (${columnsOf(some)}) in (values ${valuesOf(some)})`.execute(tx)
  }
  for (const some of pieces(without(wanted, old))) {
    const [first] = some
    if (some.length === 1) await insertRow(tx, table, first as unknown as Schema[T])
    else await sql`insert into ${links} (${columnsOf(some)}) values ${valuesOf(some)}`.execute(tx)
  }
}

/** Returns the rows by their values, each once. */
function byKey(rows: readonly Row[]): Map<string, Row> {
  return new Map(
    rows.map((row) => [
      Object.keys(row)
        .sort()
        .map((column) => row[column])
        .join(' '),
      row,
    ]),
  )
}

function without(rows: ReadonlyMap<string, Row>, others: ReadonlyMap<string, Row>): Row[] {
  return [...rows].flatMap(([key, row]) => (others.has(key) ? [] : [row]))
}

function pieces(rows: readonly Row[]): Row[][] {
  const count = Math.ceil(rows.length / TOGETHER)
  return Array.from({ length: count }, (_, at) => rows.slice(at * TOGETHER, (at + 1) * TOGETHER))
}

const columnsOf = ([first]: readonly Row[]) =>
  sql.join(Object.keys(first ?? {}).map((column) => sql.ref(column)))

const valuesOf = (rows: readonly Row[]) => sql.join(rows.map((row) => sql`(${sql.join(Object.values(row))})`))
