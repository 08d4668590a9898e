/** The indexes by which SQLite finds what searches and timers look for. */
import { DatabaseSync } from 'node:sqlite'
import { type CompiledQuery, Kysely } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bind } from '../../src/search/bind.ts'
import { parse } from '../../src/search/parser.ts'
import { ACCOUNT_FIELDS } from '../../src/store/accounts.ts'
import { DEVICE_FIELDS } from '../../src/store/devices.ts'
import { NodeSqliteDialect } from '../../src/store/engine/dialect.ts'
import { Patterns } from '../../src/store/engine/patterns.ts'
import { ReadingThread } from '../../src/store/engine/reading-thread.ts'
import { WalSync } from '../../src/store/engine/wal-sync.ts'
import type { Db, Schema } from '../../src/store/migrations/schema.ts'
import { type SqlFields, where } from '../../src/store/searchable.ts'
import { deletableSessions, SESSION_FIELDS } from '../../src/store/sessions.ts'
import { USER_FIELDS } from '../../src/store/users.ts'
import { type TemporaryStore, temporaryStore } from './temp.ts'

let temp: TemporaryStore
beforeEach(async () => {
  temp = await temporaryStore()
})
afterEach(() => temp.remove())

const search = (q: string) => ({ expression: parse(q), variables: {} })

/** Returns the database's plan for a query. */
async function planOf(query: (db: Db) => { compile(): CompiledQuery }): Promise<string> {
  const database = new DatabaseSync(temp.path)
  new Patterns(database)
  const db = new Kysely<Schema>({
    dialect: new NodeSqliteDialect(database, new WalSync(temp.path), new ReadingThread({ path: temp.path })),
  })
  const { sql, parameters } = query(db).compile()
  const steps = database.prepare(`explain query plan ${sql}`).all(...(parameters as string[]))
  await db.destroy()
  return steps.map(({ detail }) => detail).join('\n')
}

describe('an index serves', () => {
  const FIELDS = {
    users: USER_FIELDS,
    accounts: ACCOUNT_FIELDS,
    devices: DEVICE_FIELDS,
    sessions: SESSION_FIELDS,
  }
  it.each<[table: keyof typeof FIELDS, q: string, plan: string]>([
    ['users', 'user_name=ops1', 'INDEX sqlite_autoindex_users_2 (name_key=?)'],
    ['users', 'user_name~ops*', 'INDEX sqlite_autoindex_users_2 (name_key>? AND name_key<?)'],
    ['users', 'groups=dba', 'INDEX sqlite_autoindex_users_1 (id=?)'],
    ['users', 'id=01K9T5RZ8Q4W6X2C3V1B0N7M5J', 'INDEX sqlite_autoindex_users_1 (id=?)'],
    ['accounts', 'account_name=root', 'INDEX accounts_name (name_key=?)'],
    ['accounts', 'device=srv1', 'INDEX sqlite_autoindex_accounts_2 (domain_id=?)'],
    ['accounts', 'domain=corp', 'INDEX domains_name (name_key=?)'],
    ['devices', 'host=192.0.2.1', 'INDEX devices_host (host=?)'],
    ['sessions', 'user=ops1', 'INDEX sessions_user (<expr>=?)'],
    ['sessions', 'device=srv1', 'INDEX sessions_device (<expr>=?)'],
    ['sessions', 'begin~2031-06-30', 'INDEX sessions_begin (begin_time>? AND begin_time<?)'],
  ])('%s: %s', async (table, q, plan) => {
    const fields: SqlFields = FIELDS[table]
    const query = (db: Db) =>
      db
        .selectFrom(table as 'users')
        .selectAll()
        .where(where(bind(search(q), fields), fields, { most: false, isHere: false }))
    expect(await planOf(query)).toContain(plan)
  })

  it('retention, which looks for the oldest recordings that it may delete', async () => {
    expect(await planOf((db) => deletableSessions(db, 5, 10))).toBe(
      'SEARCH sessions USING INDEX sessions_deletable (begin_time<?)',
    )
  })
})
