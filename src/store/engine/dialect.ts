/**
 * Kysely over `node:sqlite`: one connection, handed to one user at a time. A transaction holds it from its
 * begin to its end, so whatever else wants the database while a transaction awaits something stands in the
 * queue instead of slipping in between its statements. The next has it as soon as a commit is made, while whoever
 * made it waits for the disk (wal-sync.ts): what is written after that is on the disk after it, too.
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
import type { ReadingThread } from './reading-thread.ts'
import type { WalSync } from './wal-sync.ts'

/** Prepared statements that are kept; lists of varying length make new texts, so there must be an end. */
const MAX_STATEMENTS = 500

/** Statements that outside a transaction are one of their own. */
const WRITING: ReadonlySet<string> = new Set(['InsertQueryNode', 'UpdateQueryNode', 'DeleteQueryNode'])

export class NodeSqliteDialect implements Dialect {
  readonly #database: DatabaseSync
  readonly #wal: WalSync
  readonly #reading: ReadingThread
  readonly #beforeStatement: () => void

  /**
   * The database is in WAL mode, `wal` is its log, and what is streamed is read by `reading`; `beforeStatement` is
   * called before each one is run.
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
   * Every transaction of the repositories writes. `immediate` takes the write lock at once, where SQLite waits
   * for another process (busy_timeout); the upgrade of a read lock in the middle would fail without waiting.
   */
  async beginTransaction(turn: Turn): Promise<void> {
    this.#wal.requireSound()
    await turn.executeQuery(CompiledQuery.raw('begin immediate'))
  }

  async commitTransaction(turn: Turn): Promise<void> {
    await turn.executeQuery(CompiledQuery.raw('commit'))
    await turn.endOnDisk()
  }

  async rollbackTransaction(turn: Turn): Promise<void> {
    // some errors (disk full, i/o) make SQLite roll back by itself; a second rollback would hide the error, and
    // where only the disk was late the transaction is over
    if (!turn.isOver && this.#database.isTransaction) await turn.executeQuery(CompiledQuery.raw('rollback'))
  }

  async destroy(): Promise<void> {
    await this.#reading.close()
    await this.#wal.close()
    this.#database.close()
  }
}

/** The connection, while one user has it: for a transaction, or for one statement. */
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

  /** The next may have it. */
  end(): void {
    if (this.isOver) return
    this.isOver = true
    this.#onEnd()
  }

  /** As `end`; resolves when what was written is on the disk. */
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

  /** Rows in pieces of `most`. Read elsewhere, while others have the connection; a transaction reads what it wrote. */
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

/** Prepared statements, by their texts. */
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
