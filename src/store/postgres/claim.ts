/**
 * The broker's claim to its database: an advisory lock of a connection of its own. Two brokers would both chain
 * events, end checkouts and seal each other's recordings.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type PostgresPlace, placeText } from '../../model/database.ts'
import { StoreClaimedError, StoreUnavailableError } from '../engine/errors.ts'
import { clientConfig, endClient } from './connection.ts'
import { storeErrorOf } from './errors.ts'
import { requireUsed } from './in-use.ts'
import type { Primary } from './primary.ts'

/** Key of the advisory lock: `brok` as a number. */
export const CLAIM = 0x62726f6b
/** Milliseconds between attempts to claim again, after the connection was lost. */
const AGAIN_MS = 1000
/**
 * The server asks after this silence, so often and this many times, whether the broker's machine is still there: by
 * its own settings it would hold the lock of a dead one for hours.
 */
const ALIVE = 'set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3'

export class Claim {
  readonly #place: PostgresPlace
  readonly #primary: Primary
  readonly #onTaken: (error: Error) => void
  /** The connection's name, by which the server knows it. */
  readonly #name = `sallyport claim ${randomUUID()}`
  #client: pg.Client | undefined
  #isReleased = false

  private constructor(place: PostgresPlace, primary: Primary, onTaken: (error: Error) => void) {
    this.#place = place
    this.#primary = primary
    this.#onTaken = onTaken
  }

  /**
   * Claims the database. `onTaken` is called if, while the connection was lost, another broker has claimed it, or its
   * data were copied elsewhere.
   * @throws StoreClaimedError, StoreUnavailableError
   */
  static async open(place: PostgresPlace, primary: Primary, onTaken: (error: Error) => void): Promise<Claim> {
    const claim = new Claim(place, primary, onTaken)
    await claim.#take()
    return claim
  }

  async release(): Promise<void> {
    this.#isReleased = true
    if (this.#client) await endClient(this.#client)
  }

  async #take(): Promise<void> {
    const config = clientConfig(this.#place, this.#primary.current)
    const client = new pg.Client({ ...config, application_name: this.#name })
    client.on('error', () => undefined)
    try {
      await client.connect()
      await this.#primary.require(client)
      await client.query(ALIVE)
      const isTaken = await tryClaim(client)
      if (!isTaken && (await this.#endOwn(client)))
        throw new Error('an earlier connection of this broker still held the claim')
      if (!isTaken) throw new StoreClaimedError(placeText({ postgres: this.#place }), await holderOf(client))
      // A copy has the claim until it ends: now no other one can begin.
      await requireUsed(client)
    } catch (error) {
      await endClient(client)
      throw storeErrorOf(error)
    }
    this.#client = client
    client.once('end', () => void this.#takeAgain())
    // Released meanwhile.
    if (this.#isReleased) await endClient(client)
  }

  /**
   * Ends this process's earlier connection, which the server may take for alive after a failure of the network.
   * Returns whether there was one.
   */
  async #endOwn(client: pg.Client): Promise<boolean> {
    const { rowCount } = await client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = $1 and pid <> pg_backend_pid() and datname = current_database()`,
      [this.#name],
    )
    return (rowCount ?? 0) > 0
  }

  async #takeAgain(): Promise<void> {
    while (!this.#isReleased) {
      try {
        await this.#take()
        return
      } catch (error) {
        if (
          error instanceof StoreClaimedError ||
          (error instanceof StoreUnavailableError && error.isElsewhere)
        ) {
          if (!this.#isReleased) this.#onTaken(error)
          return
        }
      }
      await sleep(AGAIN_MS, undefined, { ref: false })
      if (this.#primary.isOneOfSeveral) await this.#primary.find().catch(() => undefined)
    }
  }
}

/**
 * Claims the database for as long as the connection lasts, for work that ends with it.
 * @throws StoreClaimedError
 */
export async function claimFor(client: pg.Client, place: PostgresPlace): Promise<void> {
  await client.query(ALIVE)
  if (!(await tryClaim(client)))
    throw new StoreClaimedError(placeText({ postgres: place }), await holderOf(client))
}

async function tryClaim(client: pg.Client): Promise<boolean> {
  const text = 'select pg_try_advisory_lock($1) as taken'
  const { rows } = await client.query<{ taken: boolean }>(text, [CLAIM])
  return rows[0]?.taken ?? false
}

/** Returns the address and the begin of the connection that holds the lock. */
async function holderOf(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ holder: string }>(
    `select coalesce(host(a.client_addr), 'this machine') || ' since ' || to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ') as holder
      from pg_locks as l inner join pg_stat_activity as a on a.pid = l.pid
      where l.locktype = 'advisory' and l.granted and l.objid = $1
        and l.database = (select oid from pg_database where datname = current_database())`,
    [CLAIM],
  )
  return rows[0]?.holder ?? 'an unknown address'
}
