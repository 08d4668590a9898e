/**
 * Transactions that share a commit. Each commit waits for the disk and blocks the database, so work that
 * arrives meanwhile is done in one transaction. Each job has its own savepoint, so that a failed one undoes
 * nothing of the others. No job resolves before the commit is on the disk.
 */
import { setImmediate } from 'node:timers/promises'
import type { Transaction } from 'kysely'
import type { Db, Schema } from '../migrations/schema.ts'
import { keptStatement } from './kept-query.ts'

export type Tx = Transaction<Schema>

/** Limit of jobs that share a commit: they hold the connection for as long as all of them need. */
const MAX_GROUP = 32

/** Runs the work in its own transaction, or in the one that the repository is bound to. */
export function inTransaction<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  if (db.isTransaction) return work(db as Tx)
  const known = groups.get(db)
  if (known) return known.run(work)
  const made = new Commits(db)
  groups.set(db, made)
  return made.run(work)
}

/** Like `inTransaction`, for long work: no other job waits for its commit. */
export function alone<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  return db.isTransaction ? work(db as Tx) : db.transaction().execute(work)
}

/** Shared commits by database. */
const groups = new WeakMap<Db, Commits>()

interface Job {
  /** Does the work. Returns the function to call after the commit. */
  run: (tx: Tx) => Promise<() => void>
  reject: (error: unknown) => void
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
      this.#waiting.push({ run, reject })
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
      const settled = await this.#db.transaction().execute(async (tx) => {
        const done: (() => void)[] = []
        for (const job of jobs) done.push(await (jobs.length === 1 ? job.run(tx) : apart(tx, job)))
        return done
      })
      for (const settle of settled) settle()
    } catch (error) {
      for (const { reject } of jobs) reject(error)
    }
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
    await rollback(tx)
    await release(tx)
    return () => reject(error)
  }
}
