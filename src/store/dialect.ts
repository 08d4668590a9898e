/**
 * Kysely over `node:sqlite`: one connection, handed to one user at a time. A transaction holds it from its
 * begin to its end, so whatever else wants the database while a transaction awaits something stands in the
 * queue instead of slipping in between its statements.
 */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'

/** Prepared statements that are kept; lists of varying length make new texts, so there must be an end. */
const MAX_STATEMENTS = 500

export class NodeSqliteDialect implements Dialect {
  readonly #database: DatabaseSync
  readonly #beforeStatement: () => void

  /** `beforeStatement` is called before each one is run. */
  constructor(database: DatabaseSync, beforeStatement: () => void = () => undefined) {
    this.#database = database
    this.#beforeStatement = beforeStatement
  }

  createDriver(): Driver {
    return new NodeSqliteDriver(this.#database, this.#beforeStatement)
  }

  createQueryCompiler(): SqliteQueryCompiler {
    return new SqliteQueryCompiler()
  }

  createAdapter(): SqliteAdapter {
    return new SqliteAdapter()
  }

  createIntrospector(db: Kysely<unknown>): SqliteIntrospector {
    return new SqliteIntrospector(db)
  }
}

class NodeSqliteDriver implements Driver {
  readonly #database: DatabaseSync
  readonly #connection: NodeSqliteConnection
  readonly #waiting: (() => void)[] = []
  #busy = false

  constructor(database: DatabaseSync, beforeStatement: () => void) {
    this.#database = database
    this.#connection = new NodeSqliteConnection(database, beforeStatement)
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    if (this.#busy) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#busy = true
    return this.#connection
  }

  async releaseConnection(): Promise<void> {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#busy = false
  }

  /**
   * Every transaction of the repositories writes. `immediate` takes the write lock at once, where SQLite waits
   * for another process (busy_timeout); the upgrade of a read lock in the middle would fail without waiting.
   */
  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'))
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('commit'))
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    // some errors (disk full, i/o) make SQLite roll back by itself; a second rollback would hide the error
    if (this.#database.isTransaction) await connection.executeQuery(CompiledQuery.raw('rollback'))
  }

  async destroy(): Promise<void> {
    this.#database.close()
  }
}

interface Prepared {
  statement: StatementSync
  returnsRows: boolean
}

class NodeSqliteConnection implements DatabaseConnection {
  readonly #database: DatabaseSync
  readonly #beforeStatement: () => void
  readonly #prepared = new Map<string, Prepared>()

  constructor(database: DatabaseSync, beforeStatement: () => void) {
    this.#database = database
    this.#beforeStatement = beforeStatement
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const { statement, returnsRows } = this.#prepare(query.sql)
    const parameters = query.parameters as readonly SQLInputValue[]
    this.#beforeStatement()
    if (returnsRows) return { rows: statement.all(...parameters) as R[] }
    const { changes, lastInsertRowid } = statement.run(...parameters)
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) }
  }

  async *streamQuery<R>(query: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
    const statement = this.#database.prepare(query.sql)
    this.#beforeStatement()
    for (const row of statement.iterate(...(query.parameters as readonly SQLInputValue[]))) {
      yield { rows: [row as R] }
    }
  }

  #prepare(sql: string): Prepared {
    const known = this.#prepared.get(sql)
    if (known) return known
    const statement = this.#database.prepare(sql)
    const prepared = { statement, returnsRows: statement.columns().length > 0 }
    if (this.#prepared.size >= MAX_STATEMENTS) this.#prepared.clear()
    this.#prepared.set(sql, prepared)
    return prepared
  }
}
