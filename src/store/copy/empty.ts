/**
 * A server's empty database that a restore fills from a file of SQLite, in one transaction: until its commit there is
 * nothing in it, and a broker that starts meanwhile waits. No broker can claim it from the first look to the end: the
 * claim has a connection of its own, as much is read and proven before the database is filled.
 */
import type pg from 'pg'
import { type PostgresPlace, placeText } from '../../model/database.ts'
import { StoreError, UnknownOutcomeError } from '../engine/errors.ts'
import { MIGRATIONS } from '../migrate.ts'
import { Claim } from '../postgres/claim.ts'
import { isBroken } from '../postgres/errors.ts'
import { type Commit, isDone } from '../postgres/lost-answers.ts'
import { makeTables, requireEmpty } from '../postgres/migrate.ts'
import { inWords, once } from '../postgres/once.ts'
import { Pool } from '../postgres/pool.ts'
import { Primary, timelineOf } from '../postgres/primary.ts'
import { compareStores } from './compare.ts'
import { PATIENCE, PostgresSide } from './postgres-side.ts'
import { carryRows, storedIn } from './rows.ts'
import { requireTables, type Side } from './side.ts'
import { withSqlite } from './sqlite-side.ts'
import { type Table, tablesOfProgram } from './tables.ts'
import type { Row } from './values.ts'

export class EmptyDatabase {
  readonly #place: PostgresPlace
  readonly #now: () => number
  readonly #pool: Pool
  #claim: Claim | undefined
  #taken: Error | undefined
  #loaded: { client: pg.PoolClient; commit: Commit } | undefined

  private constructor(place: PostgresPlace, primary: Primary, now: () => number) {
    this.#place = place
    this.#now = now
    this.#pool = new Pool(place, primary, 1)
  }

  /**
   * Claims the database. `now` in milliseconds since the epoch.
   * @throws StoreClaimedError if a broker has it, SchemaError if it has tables, or is not for this program
   */
  static async open(place: PostgresPlace, now: () => number): Promise<EmptyDatabase> {
    const primary = new Primary(place)
    const empty = new EmptyDatabase(place, primary, now)
    try {
      await inWords(place, async () => {
        if (primary.isOneOfSeveral) await primary.find()
        empty.#claim = await Claim.open(place, primary, (error) => {
          empty.#taken = error
        })
      })
      await once(place, primary, requireEmpty)
      return empty
    } catch (error) {
      await empty.close()
      throw error
    }
  }

  /**
   * Makes the tables and writes all rows of the file at `path`, which is of this program's schema; then reads and
   * compares them. Nothing of it is there before `commit`.
   * @throws StoreError
   */
  async load(path: string): Promise<void> {
    const client = await inWords(this.#place, () => this.#pool.take())
    try {
      const commit = await inWords(this.#place, () => this.#begin(client))
      const side = new PostgresSide(placeText({ postgres: this.#place }), client)
      await withSqlite(path, false, (file) => fill(file, side))
      this.#loaded = { client, commit }
    } catch (error) {
      client.release(true)
      throw error
    }
  }

  async #begin(client: pg.PoolClient): Promise<Commit> {
    // Files are moved between this and the commit.
    await client.query(PATIENCE)
    await client.query('begin')
    const { rows } = await client.query<{ xid: string }>('select pg_current_xact_id()::text as xid')
    await makeTables(client, this.#now(), MIGRATIONS)
    return { xid: rows[0]!.xid, timeline: timelineOf(client) }
  }

  /** @throws StoreError if nothing was stored, UnknownOutcomeError if no server can tell whether it was */
  async commit(): Promise<void> {
    const { client, commit } = this.#loaded!
    if (this.#taken) throw this.#taken
    this.#loaded = undefined
    try {
      await client.query('commit')
      client.release()
    } catch (error) {
      client.release(true)
      if (isBroken(error) && (await this.#isDone(commit))) return
      await inWords(this.#place, () => Promise.reject(error))
    }
  }

  async #isDone(commit: Commit): Promise<boolean> {
    try {
      return await isDone(this.#pool, commit)
    } catch {
      const place = placeText({ postgres: this.#place })
      throw new UnknownOutcomeError(
        `${place}: the answer to the commit was lost, and it is not known whether the restored data are there`,
      )
    }
  }

  /** Gives it back. Undoes what was not committed. */
  async close(): Promise<void> {
    this.#loaded?.client.release(true)
    this.#loaded = undefined
    await this.#claim?.release()
    await this.#pool.close()
  }
}

/** Fills the tables in the transaction that has made them. */
async function fill(file: Side, side: PostgresSide): Promise<void> {
  const tables = tablesOfProgram()
  await requireTables(file, tables)
  // Without the factory's objects: the file has the present ones.
  await side.clear(tables)
  const stored = (row: Row, table: Table) => storedIn(side, row, table)
  await carryRows(file, side, tables, { stored, step: (work) => work() })
  const { fault } = await compareStores(file, side, tables, { stored })
  if (fault !== undefined)
    throw new StoreError(`${side.place} differs from what was written into it: ${fault}`)
}
