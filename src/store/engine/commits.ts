/**
 * Transactions that share a commit. Each commit waits for the disk and blocks the database, so work that
 * arrives meanwhile is done in one transaction. If a job fails, all are done again, each with its own savepoint, so that
 * it undoes nothing of the others. No job resolves before the commit is on the disk.
 *
 * Where several processes write, the engine refuses transactions that would not have the same result one after
 * the other (ConflictError). Such work is repeated, as is that of a job beside one that failed, so it must have no effect
 * but on the database.
 */
import { randomInt } from 'node:crypto'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { type IsolationLevel, PostgresAdapter, type Transaction } from 'kysely'
import type { Db, Schema } from '../migrations/schema.ts'
import { ConflictError } from './errors.ts'
import { keptStatement } from './kept-query.ts'

export type Tx = Transaction<Schema>

/** Limit of jobs that share a commit: they hold the connection for as long as all of them need. */
const MAX_GROUP = 32

/** Limits of the repetition of refused work. */
const MAX_ATTEMPTS = 10
const MAX_REPEATING_MS = 5000
/** Milliseconds of the longest pause before the second attempt; each further one may be longer by as much. */
const PAUSE_MS = 10

/**
 * Runs the work in its own transaction, or in the one that the repository is bound to.
 * @throws ConflictError if others were faster at each attempt
 */
export function inTransaction<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  if (db.isTransaction) return within(db as Tx, work)
  const known = groups.get(db)
  if (known) return known.run(work)
  const made = new Commits(db)
  groups.set(db, made)
  return made.run(work)
}

/**
 * Like `inTransaction`, for work of one statement, which a server takes as a transaction by itself: one message there and
 * back. If its answer is lost it is not known whether it was done, so doing it again must do no harm.
 */
export function inOneStatement<T>(db: Db, work: (db: Db) => Promise<T>): Promise<T> {
  return isOnServer(db) && !db.isTransaction ? work(db) : inTransaction(db, work)
}

/**
 * Like `inTransaction`, for long work: no other job waits for its commit. `isOnce`: it has effects elsewhere, and is
 * not repeated.
 */
export async function alone<T>(
  db: Db,
  work: (tx: Tx) => Promise<T>,
  isOnce = false,
  level: IsolationLevel = 'serializable',
): Promise<T> {
  if (db.isTransaction) return within(db as Tx, work)
  for (const attempts = new Attempts(); ; ) {
    try {
      return await db.transaction().setIsolationLevel(level).execute(work)
    } catch (error) {
      if (isOnce || !attempts.mayRepeat(error)) throw error
      await attempts.pause()
    }
  }
}

/** Counts the attempts of one work. */
class Attempts {
  #since: number | undefined
  #made = 1

  /** Whether the error is that of a conflict, and the work may be tried once more. */
  mayRepeat(error: unknown): boolean {
    if (!(error instanceof ConflictError)) return false
    this.#since ??= performance.now()
    return this.#made < MAX_ATTEMPTS && performance.now() - this.#since < MAX_REPEATING_MS
  }

  /** Waits for a random time, so that two that met do not meet again. */
  async pause(): Promise<void> {
    await sleep(randomInt(PAUSE_MS * this.#made++ + 1))
  }
}

/**
 * Runs work inside a transaction. In PostgreSQL an error would end the whole transaction, so the work has a
 * savepoint to go back to: as in SQLite, the transaction can be used afterwards.
 */
async function within<T>(tx: Tx, work: (tx: Tx) => Promise<T>): Promise<T> {
  if (!isOnServer(tx)) return await work(tx)
  await begin(tx)
  try {
    const value = await work(tx)
    await release(tx)
    return value
  } catch (error) {
    await undo(tx, error)
    throw error
  }
}

/** Whether the database is PostgreSQL's, and not in this process. */
export const isOnServer = (db: Db): boolean => db.getExecutor().adapter instanceof PostgresAdapter

/** Shared commits by database. */
const groups = new WeakMap<Db, Commits>()

interface Job {
  /** Does the work. Returns the function to call after the commit. */
  run: (tx: Tx) => Promise<() => void>
  reject: (error: unknown) => void
  attempts: Attempts
}

class Commits {
  readonly #db: Db
  readonly #waiting: Job[] = []
  #isRunning = false

  constructor(db: Db) {
    this.#db = db
  }

  run<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const run = async (tx: Tx) => {
        const value = await work(tx)
        return () => resolve(value)
      }
      this.#waiting.push({ run, reject, attempts: new Attempts() })
      if (!this.#isRunning) void this.#runAll()
    })
  }

  async #runAll(): Promise<void> {
    this.#isRunning = true
    while (this.#waiting.length > 0) {
      // Work that arrives now, over other connections, joins in.
      await setImmediate()
      await this.#runGroup(this.#waiting.splice(0, MAX_GROUP))
    }
    this.#isRunning = false
  }

  async #runGroup(jobs: readonly Job[]): Promise<void> {
    try {
      for (const settle of (await this.#together(jobs)) ?? (await this.#eachApart(jobs))) settle()
    } catch (error) {
      const repeated = jobs.filter(({ attempts }) => attempts.mayRepeat(error))
      for (const job of jobs) if (!repeated.includes(job)) job.reject(error)
      await Promise.all(repeated.map(({ attempts }) => attempts.pause()))
      // Before those that came later, in their order.
      this.#waiting.unshift(...repeated)
    }
  }

  /**
   * Does the jobs without savepoints, which would take as long as short ones. Returns the functions to call, or undefined
   * if nothing was done because one of several has failed.
   */
  async #together(jobs: readonly Job[]): Promise<(() => void)[] | undefined> {
    let failure: unknown
    try {
      return await this.#db.transaction().execute(async (tx) => {
        const done: (() => void)[] = []
        for (const { run } of jobs) {
          const settle = await run(tx).catch((error: unknown) => {
            failure = error
            throw error
          })
          done.push(settle)
        }
        return done
      })
    } catch (error) {
      // A conflict is that of the transaction as a whole.
      const isOfOne = 1 < jobs.length && error === failure && !(error instanceof ConflictError)
      if (isOfOne) return undefined
      throw error
    }
  }

  async #eachApart(jobs: readonly Job[]): Promise<(() => void)[]> {
    return await this.#db.transaction().execute(async (tx) => {
      const done: (() => void)[] = []
      for (const job of jobs) done.push(await apart(tx, job))
      return done
    })
  }
}

const begin = keptStatement('savepoint piece')
const release = keptStatement('release piece')
const rollback = keptStatement('rollback to piece')

/**
 * Runs one job under its savepoint. Returns the function to call after the commit.
 * @throws if the whole transaction is lost, as after a disk error: then there is no savepoint either
 */
async function apart(tx: Tx, { run, reject }: Job): Promise<() => void> {
  await begin(tx)
  try {
    const settle = await run(tx)
    await release(tx)
    return settle
  } catch (error) {
    await undo(tx, error)
    return () => reject(error)
  }
}

/** Goes back to the savepoint. @throws ConflictError if the error is one: nothing of the transaction can stay */
async function undo(tx: Tx, error: unknown): Promise<void> {
  if (error instanceof ConflictError) throw error
  await rollback(tx)
  await release(tx)
}
