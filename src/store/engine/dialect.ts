/**
 * Kysely over `node:sqlite`: one connection, used by one caller at a time. A transaction holds it from its
 * begin to its end, so that other statements queue and cannot slip in between while the transaction awaits.
 * The next caller gets the connection as soon as a commit is made, while the previous one waits for the disk
 * (wal-sync.ts): later writes reach the disk after it, too.
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
  type TransactionSettings,
} from 'kysely'
import type { ReadingThread } from './reading-thread.ts'
import type { WalSync } from './wal-sync.ts'

/** Limit of cached prepared statements: lists of varying length make ever new texts. */
const MAX_STATEMENTS = 500

/** Statements that form their own transaction outside of one. */
const WRITING: ReadonlySet<string> = new Set(['InsertQueryNode', 'UpdateQueryNode', 'DeleteQueryNode'])

export class NodeSqliteDialect implements Dialect {
  readonly #database: DatabaseSync
  readonly #wal: WalSync
  readonly #reading: ReadingThread
  readonly #beforeStatement: () => void

  /**
   * The database is in WAL mode, `wal` is its log, and streams are read by `reading`; `beforeStatement` is
   * called before each statement.
   */
  constructor(
    database: DatabaseSync,
    wal: WalSync,
    reading: ReadingThread,
    beforeStatement: () => void = () => undefined,
  ) {
    this.#database = database
    this.#wal = wal
    this.#reading = reading
    this.#beforeStatement = beforeStatement
  }

  createDriver(): Driver {
    return new NodeSqliteDriver(this.#database, this.#wal, this.#reading, this.#beforeStatement)
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
  readonly #wal: WalSync
  readonly #reading: ReadingThread
  readonly #statements: Statements
  readonly #waiting: (() => void)[] = []
  #busy = false

  constructor(database: DatabaseSync, wal: WalSync, reading: ReadingThread, beforeStatement: () => void) {
    this.#database = database
    this.#wal = wal
    this.#reading = reading
    this.#statements = new Statements(database, beforeStatement)
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<Turn> {
    if (this.#busy) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#busy = true
    return new Turn(this.#database, this.#statements, this.#wal, this.#reading, () => this.#pass())
  }

  async releaseConnection(turn: Turn): Promise<void> {
    turn.end()
  }

  #pass(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#busy = false
  }

  /**
   * Begins a transaction, which writes unless it says otherwise. `immediate` takes the write lock at once, and SQLite waits for
   * another process there (busy_timeout); the upgrade of a read lock in the middle would fail without
   * waiting.
   */
  async beginTransaction(turn: Turn, { accessMode }: TransactionSettings): Promise<void> {
    this.#wal.requireSound()
    await turn.executeQuery(CompiledQuery.raw(accessMode === 'read only' ? 'begin' : 'begin immediate'))
  }

  async commitTransaction(turn: Turn): Promise<void> {
    await turn.executeQuery(CompiledQuery.raw('commit'))
    await turn.endOnDisk()
  }

  async rollbackTransaction(turn: Turn): Promise<void> {
    // After some errors (disk full, i/o) SQLite has rolled back by itself, and a second rollback would hide
    // the error. If only the sync to the disk failed, the transaction has ended.
    if (!turn.isOver && this.#database.isTransaction) await turn.executeQuery(CompiledQuery.raw('rollback'))
  }

  async destroy(): Promise<void> {
    await this.#reading.close()
    await this.#wal.close()
    this.#database.close()
  }
}

/** The connection, held by one caller: for a transaction, or for one statement. */
class Turn implements DatabaseConnection {
  readonly #database: DatabaseSync
  readonly #statements: Statements
  readonly #wal: WalSync
  readonly #reading: ReadingThread
  readonly #onEnd: () => void
  isOver = false

  constructor(
    database: DatabaseSync,
    statements: Statements,
    wal: WalSync,
    reading: ReadingThread,
    onEnd: () => void,
  ) {
    this.#database = database
    this.#statements = statements
    this.#wal = wal
    this.#reading = reading
    this.#onEnd = onEnd
  }

  /** Releases the connection. */
  end(): void {
    if (this.isOver) return
    this.isOver = true
    this.#onEnd()
  }

  /** Releases the connection; resolves when its writes are on the disk. */
  async endOnDisk(): Promise<void> {
    const written = this.#wal.sync()
    this.end()
    await written
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    if (this.isOver) throw new Error('the connection was given to the next')
    const commits = WRITING.has(query.query.kind) && !this.#database.isTransaction
    if (commits) this.#wal.requireSound()
    const result = this.#statements.run<R>(query)
    if (commits) await this.endOnDisk()
    return result
  }

  /**
   * Yields rows in pieces of `most`. They are read by another thread, so that others can use the connection;
   * a transaction reads its own writes here.
   */
  async *streamQuery<R>(query: CompiledQuery, most: number): AsyncIterableIterator<QueryResult<R>> {
    if (this.#database.isTransaction) {
      yield await this.executeQuery<R>(query)
      return
    }
    this.end()
    for await (const rows of this.#reading.rows(query.sql, query.parameters, most))
      yield { rows: rows as R[] }
  }
}

interface Prepared {
  statement: StatementSync
  returnsRows: boolean
}

/** Prepared statements by their texts. */
class Statements {
  readonly #database: DatabaseSync
  readonly #beforeStatement: () => void
  readonly #prepared = new Map<string, Prepared>()

  constructor(database: DatabaseSync, beforeStatement: () => void) {
    this.#database = database
    this.#beforeStatement = beforeStatement
  }

  run<R>(query: CompiledQuery): QueryResult<R> {
    const { statement, returnsRows } = this.#prepare(query.sql)
    const parameters = query.parameters as readonly SQLInputValue[]
    this.#beforeStatement()
    if (returnsRows) return { rows: statement.all(...parameters) as R[] }
    const { changes, lastInsertRowid } = statement.run(...parameters)
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) }
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
