/** Connections to the primary of a database, kept for the next use. */
import pg from 'pg'
import type { PostgresPlace } from '../../model/database.ts'
import { clientConfig, END_MS, socketOf } from './connection.ts'
import { isBroken, storeErrorOf } from './errors.ts'
import { requireUsed } from './in-use.ts'
import type { Primary } from './primary.ts'

/** Time for a connection, or for a free one of the pool. */
const CONNECT_MS = 5000

export class Pool {
  readonly #primary: Primary
  readonly #max: number
  readonly #pool: pg.Pool
  readonly #clients = new Set<pg.PoolClient>()

  /** `max` connections at most, opened on demand. */
  constructor(place: PostgresPlace, primary: Primary, max: number) {
    this.#primary = primary
    this.#max = max
    this.#pool = new pg.Pool({
      max,
      connectionTimeoutMillis: CONNECT_MS,
      // The primary may be another host by the time of a connection.
      Client: class extends pg.Client {
        constructor() {
          super(clientConfig(place, primary.current))
        }
      },
      onConnect: async (client) => {
        await primary.require(client)
        await requireUsed(client)
      },
    })
    // Without a listener an error of a connection, idle or in use, would end the process. Its user gets the error
    // of the statement, and an idle one leaves the pool.
    const ignore = () => undefined
    this.#pool.on('error', ignore)
    this.#pool.on('connect', (client) => {
      client.on('error', ignore)
      this.#clients.add(client)
    })
    this.#pool.on('remove', (client) => this.#clients.delete(client))
  }

  /** Returns a connection, for the caller to release. @throws StoreUnavailableError */
  async take(): Promise<pg.PoolClient> {
    try {
      return await this.#pool.connect().catch(async (error: unknown) => {
        // All connections may be in use for long: that says nothing of the host.
        const isFull = this.#pool.totalCount >= this.#max && this.#pool.idleCount === 0
        if (!this.#primary.isOneOfSeveral || isFull) throw error
        await this.#primary.find()
        return await this.#pool.connect()
      })
    } catch (error) {
      throw storeErrorOf(error)
    }
  }

  /** Returns the rows of one statement. @throws StoreError */
  async query<Row>(text: string, parameters: unknown[]): Promise<Row[]> {
    const client = await this.take()
    let failure: unknown
    try {
      return (await client.query(text, parameters)).rows
    } catch (error) {
      failure = error
      throw storeErrorOf(error)
    } finally {
      client.release(failure !== undefined && isBroken(failure))
    }
  }

  /** Closes the sockets of all connections, so that waiting statements fail at once. */
  cut(): void {
    for (const client of this.#clients) socketOf(client).destroy()
  }

  /** Closes all connections when they are released. */
  async close(): Promise<void> {
    const timer = setTimeout(() => this.cut(), END_MS)
    await this.#pool.end()
    clearTimeout(timer)
  }
}
