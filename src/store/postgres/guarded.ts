/**
 * The dialect, as long as the server is there: what waits for it when it goes away fails at once (reach.ts). The
 * connection is given back when its last statement has ended.
 */
import type {
  CompiledQuery,
  DatabaseConnection,
  Dialect,
  Driver,
  QueryResult,
  TransactionSettings,
} from 'kysely'
import { StoreUnavailableError } from '../engine/errors.ts'
import type { PostgresReach } from './reach.ts'

/** Returns the dialect with statements that are held by `reach`, which is closed with it. */
export function guarded(dialect: Dialect, reach: PostgresReach): Dialect {
  return {
    createDriver: () => new GuardedDriver(dialect.createDriver(), reach),
    createQueryCompiler: () => dialect.createQueryCompiler(),
    createAdapter: () => dialect.createAdapter(),
    createIntrospector: (db) => dialect.createIntrospector(db),
  }
}

class GuardedDriver implements Driver {
  readonly #driver: Driver
  readonly #reach: PostgresReach

  constructor(driver: Driver, reach: PostgresReach) {
    this.#driver = driver
    this.#reach = reach
  }

  /** Called before the first statement; without it there is no `destroy`. */
  async init(): Promise<void> {
    await this.#driver.init()
    this.#reach.start()
  }

  async acquireConnection(): Promise<Guarded> {
    return new Guarded(await this.#driver.acquireConnection(), this.#reach)
  }

  async beginTransaction(guarded: Guarded, settings: TransactionSettings): Promise<void> {
    await guarded.hold((inner) => this.#driver.beginTransaction(inner, settings))
  }

  async commitTransaction(guarded: Guarded): Promise<void> {
    await guarded.hold((inner) => this.#driver.commitTransaction(inner))
  }

  async rollbackTransaction(guarded: Guarded): Promise<void> {
    if (!guarded.isLeft) await guarded.hold((inner) => this.#driver.rollbackTransaction(inner))
  }

  async releaseConnection(guarded: Guarded): Promise<void> {
    if (!guarded.isLeft) return await this.#driver.releaseConnection(guarded.inner)
    // Its last statement may take until its own time-out.
    void guarded.last
      .then(() => this.#driver.rollbackTransaction(guarded.inner))
      .catch(() => undefined)
      .then(() => this.#driver.releaseConnection(guarded.inner))
      .catch(() => undefined)
  }

  async destroy(): Promise<void> {
    await this.#reach.close()
    await this.#driver.destroy()
  }
}

class Guarded implements DatabaseConnection {
  readonly inner: DatabaseConnection
  readonly #reach: PostgresReach
  /** Settles with the last statement. */
  last: Promise<unknown> = Promise.resolve()
  /** Whether the caller has left the last statement to itself. */
  isLeft = false

  constructor(inner: DatabaseConnection, reach: PostgresReach) {
    this.inner = inner
    this.#reach = reach
  }

  async hold<T>(work: (inner: DatabaseConnection) => Promise<T>): Promise<T> {
    let isOver = false
    try {
      return await this.#reach.hold(() => {
        const running = work(this.inner).finally(() => {
          isOver = true
        })
        this.last = running.catch(() => undefined)
        return running
      })
    } catch (error) {
      if (!isOver) this.isLeft = true
      if (error instanceof StoreUnavailableError && error.isFull) await this.#reach.checkRoom()
      throw error
    }
  }

  executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return this.hold((inner) => inner.executeQuery<R>(query))
  }

  async *streamQuery<R>(query: CompiledQuery, most: number): AsyncIterableIterator<QueryResult<R>> {
    const pieces = this.inner.streamQuery<R>(query, most)
    try {
      for (;;) {
        const piece = await this.hold(() => pieces.next())
        if (piece.done) return
        yield piece.value
      }
    } finally {
      // A list without a taker gives its file and its place back, now or when its statement has ended.
      const ended = pieces.return?.()
      if (this.isLeft) ended?.catch(() => undefined)
      else await ended
    }
  }
}
