/** Copies of the database: made at one moment beside a writing process, and checked before use. */
import { closeSync, openSync } from 'node:fs'
import { backup, DatabaseSync } from 'node:sqlite'
import { TRIGGERS as FIRST } from '../migrations/0021-changes.ts'
import { TRIGGERS as OF_TIMEFRAMES } from '../migrations/0026-timeframes.ts'
import { TRIGGERS as OF_APPROVALS } from '../migrations/0027-approvals.ts'
import { TRIGGERS as OF_PROVIDER_SESSIONS } from '../migrations/0045-provider-sessions.ts'
import { TRIGGERS as OF_CERTIFICATES } from '../migrations/0048-user-certificates.ts'
import { StoreError } from './errors.ts'

/** The triggers that a database has from each migration on, with a table that it has made. */
export const TRIGGERS = [
  { table: 'changes', triggers: FIRST },
  { table: 'timeframes', triggers: OF_TIMEFRAMES },
  { table: 'approvals', triggers: OF_APPROVALS },
  { table: 'provider_sessions', triggers: OF_PROVIDER_SESSIONS },
  { table: 'user_certificates', triggers: OF_CERTIFICATES },
]

/** Pages copied in one turn of the event loop. */
const PAGES_AT_ONCE = 256
/** Time that a statement waits for another process. */
const BUSY_TIMEOUT_MS = 5000

/**
 * Copies the database at `path` into a file that does not exist yet, mode 0600.
 *
 * A read transaction is held meanwhile: SQLite restarts a copy whenever another process has written, and
 * beside a busy broker would never finish. The broker's writes continue; its write-ahead log grows until the
 * copy is made.
 */
export async function copyDatabase(path: string, target: string): Promise<void> {
  closeSync(openSync(target, 'wx', 0o600))
  const source = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS })
  try {
    source.exec('begin')
    // `begin` alone reads nothing, and so pins nothing.
    source.prepare('select count(*) from schema_migrations').get()
    await backup(source, target, { rate: PAGES_AT_ONCE })
  } finally {
    source.close()
  }
}

/**
 * Checks a database that came from elsewhere, before any of it is used.
 * @throws StoreError if it is damaged, or would run code by itself
 */
export function requireSound(path: string): void {
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS })
  try {
    requireOwnTriggers(database)
    const found = database.prepare('pragma quick_check(1)').get()
    if (found?.['quick_check'] !== 'ok') throw new StoreError(String(found?.['quick_check']))
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new StoreError(`the database ${path} is damaged: ${reason}`)
  } finally {
    database.close()
  }
}

/** @throws StoreError if the database would do something by itself that ours do not, or not do what they do */
function requireOwnTriggers(database: DatabaseSync): void {
  const rows = database
    .prepare("select name, sql from sqlite_schema where type in ('trigger', 'view') order by name")
    .all()
  // An older program's has no log of changes yet, or one that notes less.
  const own = TRIGGERS.filter(({ table }) => has(database, table)).map(({ triggers }) => triggers)
  const foreign = rows.find(({ name, sql }) => own.every((one) => one.get(String(name)) !== sql))
  if (foreign)
    throw new StoreError(`it has a trigger or a view (${foreign['name']}), which sallyport has not`)
  const expected = own.reduce((sum, { size }) => sum + size, 0)
  if (rows.length < expected)
    throw new StoreError(`it has ${rows.length} triggers that note changes of rights, not ${expected}`)
}

function has(database: DatabaseSync, table: string): boolean {
  return database.prepare('select 1 from sqlite_schema where name = ?').get(table) !== undefined
}
