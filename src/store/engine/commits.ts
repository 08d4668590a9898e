/**
 * Transactions that share a commit. Each commit waits for the disk, and who wants the database with it: what came
 * meanwhile is done in one transaction, each piece under a savepoint of its
 * own, so that one that fails takes nothing with it. Nobody is answered before the commit stands.
 */
import { setImmediate } from 'node:timers/promises'
import { sql, type Transaction } from 'kysely'
import type { Db, Schema } from '../migrations/schema.ts'

export type Tx = Transaction<Schema>

/** Pieces that share a commit: the connection is theirs for as long as all of them take. */
const MAX_GROUP = 32

/** The work in a transaction of its own, or in the one that the repository is bound to. */
export function inTransaction<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  if (db.isTransaction) return work(db as Tx)
  const known = groups.get(db)
  if (known) return known.run(work)
  const made = new Commits(db)
  groups.set(db, made)
  return made.run(work)
}

/** As `inTransaction`, for work that takes its time: nobody else waits for its commit. */
export function alone<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  return db.isTransaction ? work(db as Tx) : db.transaction().execute(work)
}

/** By database. */
const groups = new WeakMap<Db, Commits>()

interface Job {
  /** Does the work; answers with what is to be done when the commit stands. */
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
      // whatever else has come by now, over other connections, joins in
      await setImmediate()
      await this.#runGroup(this.#waiting.splice(0, MAX_GROUP))
    }
    this.#isRunning = false
  }

  async #runGroup(jobs: readonly Job[]): Promise<void> {
    try {
      const settled = await this.#db.transaction().execute(async (tx) => {
        const done: (() => void)[] = []
        for (const job of jobs) done.push(await apart(tx, job))
        return done
      })
      for (const settle of settled) settle()
    } catch (error) {
      for (const { reject } of jobs) reject(error)
    }
  }
}

/**
 * One piece under its savepoint; answers with what is to be done when the commit stands.
 * @throws when the whole transaction is gone, as after an error of the disk: then there is no savepoint either
 */
async function apart(tx: Tx, { run, reject }: Job): Promise<() => void> {
  await sql`savepoint piece`.execute(tx)
  try {
    const settle = await run(tx)
    await sql`release piece`.execute(tx)
    return settle
  } catch (error) {
    await sql`rollback to piece`.execute(tx)
    await sql`release piece`.execute(tx)
    return () => reject(error)
  }
}
