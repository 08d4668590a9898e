/**
 * Who has written: a row for each process that has the store open, with the number of its transactions that
 * changed objects. A review looks there for what other processes did (`dataVersion`), as SQLite tells by itself.
 */
import { CompiledQuery, type OperationNode, type RootOperationNode } from 'kysely'
import type pg from 'pg'

/** Tables with what happens, on which no right rests. */
const HAPPENINGS: readonly string[] = ['audit', 'idempotency_keys', 'sessions', 'settings', 'uploads']
/** Rows of processes stay for this long after their last change: others have seen it by then. */
const STALE_MS = 7 * 24 * 3_600_000

/** Whether the statement writes into a table of objects. */
export function writesObjects({ query }: { query: RootOperationNode }): boolean {
  const table = tableOf(query)
  return table !== undefined && !HAPPENINGS.includes(table)
}

function tableOf(query: RootOperationNode): string | undefined {
  if (query.kind === 'InsertQueryNode') return nameOf(query.into)
  if (query.kind === 'UpdateQueryNode') return nameOf(query.table)
  return query.kind === 'DeleteQueryNode' ? nameOf(query.from.froms[0]) : undefined
}

function nameOf(node: OperationNode | undefined): string | undefined {
  if (node?.kind !== 'TableNode') return undefined
  return (node as { table?: { identifier?: { name?: string } } }).table?.identifier?.name
}

export class Writer {
  readonly #id: string
  readonly #now: () => number

  constructor(id: string, now: () => number) {
    this.#id = id
    this.#now = now
  }

  /** Returns the statement that counts a transaction of this process. */
  note(): CompiledQuery {
    return CompiledQuery.raw(
      `insert into writers (id, version, seen) values ($1, 1, $2)
        on conflict (id) do update set version = writers.version + 1, seen = $2`,
      [this.#id, this.#now()],
    )
  }

  /** Returns a number that differs if another process has changed objects since. */
  async version(pool: pg.Pool): Promise<number> {
    const text = 'select coalesce(sum(version), 0) as version from writers where id <> $1'
    const { rows } = await pool.query<{ version: number }>(text, [this.#id])
    return rows[0]?.version ?? 0
  }

  /** Removes the rows of processes that ended long ago. */
  async clear(pool: pg.Pool): Promise<void> {
    await pool.query('delete from writers where seen < $1', [this.#now() - STALE_MS]).catch(() => undefined)
  }
}
