/**
 * Kysely over `pg`. Transactions are serializable: what reads and then writes relies on it (engine/commits.ts
 * repeats those that the engine refuses). Searches and long lists have a few connections of their own, so that no
 * number of them keeps an event from being stored.
 */
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  type QueryResult,
  type TransactionSettings,
} from 'kysely'
import type pg from 'pg'
import { StoreError } from '../engine/errors.ts'
import { nameOf } from '../engine/kept-query.ts'
import { isSearch, PostgresCompiler } from './compiler.ts'
import { isBroken, storeErrorOf } from './errors.ts'
import type { ListReader } from './lists.ts'
import { type Commit, isDone } from './lost-answers.ts'
import type { Pool } from './pool.ts'
import { timelineOf } from './primary.ts'
import { cleaned } from './values.ts'

/** Time for a search; SQLite's counts characters instead. */
export const SEARCH_MS = 3000

export interface Connections {
  /** For all but searches and lists. */
  pool: Pool
  /** For searches and lists. */
  reading: Pool
  lists: ListReader
  /** Milliseconds for a search. */
  searchMs: number
}

export class PostgresEngineDialect implements Dialect {
  readonly #connections: Connections

  constructor(connections: Connections) {
    this.#connections = connections
  }

  createDriver(): Driver {
    return new PostgresEngineDriver(this.#connections)
  }

  createQueryCompiler(): PostgresCompiler {
    return new PostgresCompiler()
  }

  createAdapter(): PostgresAdapter {
    return new PostgresAdapter()
  }

  createIntrospector(db: Kysely<unknown>): PostgresIntrospector {
    return new PostgresIntrospector(db)
  }
}

class PostgresEngineDriver implements Driver {
  readonly #connections: Connections

  constructor(connections: Connections) {
    this.#connections = connections
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<Turn> {
    return new Turn(this.#connections)
  }

  async releaseConnection(turn: Turn): Promise<void> {
    turn.release()
  }

  async beginTransaction(turn: Turn, settings: TransactionSettings): Promise<void> {
    await turn.begin(settings)
  }

  async commitTransaction(turn: Turn): Promise<void> {
    await turn.commit()
  }

  async rollbackTransaction(turn: Turn): Promise<void> {
    await turn.rollback()
  }

  async destroy(): Promise<void> {
    const { pool, reading } = this.#connections
    await Promise.all([pool.close(), reading.close()])
  }
}

/** One caller's use of a connection, which it takes with its first statement: only then its pool is known. */
class Turn implements DatabaseConnection {
  readonly #connections: Connections
  #client: pg.PoolClient | undefined
  #isBroken = false
  /** Absent if the transaction only reads. */
  #commit: Commit | undefined

  constructor(connections: Connections) {
    this.#connections = connections
  }

  async begin({ isolationLevel = 'serializable', accessMode }: TransactionSettings): Promise<void> {
    this.#client = await this.#connections.pool.take()
    const mode = accessMode === undefined ? '' : ` ${accessMode}`
    const begin = `begin isolation level ${isolationLevel}${mode}`
    if (accessMode === 'read only') {
      await this.#run(this.#client, CompiledQuery.raw(begin))
      return
    }
    const text = `${begin}; select pg_current_xact_id()::text as xid`
    const { rows } = await this.#run(this.#client, CompiledQuery.raw(text))
    this.#commit = { xid: rows[0].xid, timeline: timelineOf(this.#client) }
  }

  async commit(): Promise<void> {
    const client = this.#client!
    let command: string
    try {
      command = (await this.#run(client, CompiledQuery.raw('commit'))).command
    } catch (error) {
      if (!this.#isBroken || !this.#commit) throw error
      // Its place in the pool is needed for the question.
      this.release()
      if (await isDone(this.#connections.pool, this.#commit)) return
      throw error
    }
    // The answer to the commit of a transaction that has failed.
    if (command !== 'COMMIT') throw new StoreError('the transaction had failed before its commit')
  }

  async rollback(): Promise<void> {
    if (this.#client && !this.#isBroken)
      await this.#run(this.#client, CompiledQuery.raw('rollback')).catch(() => undefined)
  }

  /** Gives the connection back; one with an open transaction, or without an answer, is closed. */
  release(): void {
    this.#client?.release(this.#isBroken)
    this.#client = undefined
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    if (this.#client) return resultOf(await this.#run(this.#client, query))
    const { pool, reading, searchMs } = this.#connections
    if (!isSearch(query)) {
      this.#client = await pool.take()
      return resultOf(await this.#run(this.#client, query))
    }
    this.#client = await reading.take()
    await this.#run(
      this.#client,
      CompiledQuery.raw(`begin read only; set local statement_timeout = ${searchMs}`),
    )
    try {
      return resultOf(await this.#run(this.#client, query, true))
    } finally {
      await this.rollback()
    }
  }

  /**
   * Yields rows in pieces of `most`, all as of one moment (lists.ts); a transaction reads its own writes here.
   */
  async *streamQuery<R>(query: CompiledQuery, most: number): AsyncIterableIterator<QueryResult<R>> {
    if (this.#client) {
      yield await this.executeQuery<R>(query)
      return
    }
    const { reading, lists, searchMs } = this.#connections
    const parameters = query.parameters.map(cleaned)
    const limit = isSearch(query) ? searchMs : undefined
    for await (const rows of lists.rows(() => reading.take(), { text: query.sql, parameters, most, limit }))
      yield { rows: rows as R[] }
  }

  async #run(client: pg.PoolClient, query: CompiledQuery, search = false): Promise<pg.QueryResult> {
    try {
      const name = nameOf(query)
      const values = query.parameters.map(cleaned)
      const done = await client.query({ text: query.sql, values, ...(name !== undefined && { name }) })
      return [done].flat().at(-1)!
    } catch (error) {
      this.#isBroken ||= isBroken(error)
      throw storeErrorOf(error, search)
    }
  }
}

const COUNTED: readonly string[] = ['INSERT', 'UPDATE', 'DELETE']

function resultOf<R>({ command, rowCount, rows }: pg.QueryResult): QueryResult<R> {
  return {
    rows: (rows ?? []) as R[],
    ...(COUNTED.includes(command) && { numAffectedRows: BigInt(rowCount ?? 0) }),
  }
}
