/** A store in a database of a PostgreSQL server. */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type PostgresPlace, placeText } from '../../model/database.ts'
import { StoreError } from '../engine/errors.ts'
import { MIGRATIONS, SCHEMA_VERSION } from '../migrate.ts'
import { claimFor } from '../postgres/claim.ts'
import { storeErrorOf } from '../postgres/errors.ts'
import { migratePostgres, requireUsable } from '../postgres/migrate.ts'
import { once } from '../postgres/once.ts'
import { Primary } from '../postgres/primary.ts'
import { Timelines } from '../postgres/timelines.ts'
import { quoted, type Side } from './side.ts'
import type { Table } from './tables.ts'
import type { Row, Value } from './values.ts'

/** Time for a statement by the server's clock, and for its answer by ours. */
const STATEMENT_MS = 120_000
const ANSWER_MS = STATEMENT_MS + 5000
/** Time in which connections of a broker or a command that has just ended may still be there. */
const ENDING_MS = 1000
const PAUSE_MS = 100
/** Settings of a connection. The two stores take turns, and neither may end it while the other works for long. */
export const PATIENCE = `set statement_timeout = ${STATEMENT_MS}; set idle_in_transaction_session_timeout = 0`

const BYTEA = 17
const INT8 = 20

/** Exact ones, where the broker's own are numbers. */
const TYPES = {
  getTypeParser(type: number, format?: 'text' | 'binary') {
    if (type === INT8) return BigInt
    if (type === BYTEA) return (text: string) => new Uint8Array(Buffer.from(text.slice(2), 'hex'))
    return pg.types.getTypeParser(type, format)
  },
} as pg.CustomTypesConfig

/**
 * Works on the store, alone with it: claimed by the connection that works on it, so that both end together.
 * `folder`: the data folder that knows the server's latest timeline; absent if there is none.
 * @throws StoreError if it cannot be reached, is in use, or a former primary's
 */
export async function withPostgres<T>(
  place: PostgresPlace,
  folder: string | undefined,
  work: (side: Side) => Promise<T>,
): Promise<T> {
  return await withSide(place, folder, work, async (client) => {
    await claimFor(client, place)
    await requireAlone(client)
  })
}

/**
 * Reads the store as of one moment, beside a broker that works on. `folder`: its data folder, which knows the server's
 * latest timeline.
 * @throws StoreError if it cannot be reached, is of another version, or a former primary's
 */
export async function withSnapshot<T>(
  place: PostgresPlace,
  folder: string,
  work: (side: Side) => Promise<T>,
): Promise<T> {
  return await withSide(place, folder, work, async (client) => {
    await client.query('begin isolation level repeatable read read only')
    const version = await requireUsable(client, MIGRATIONS)
    if (version !== SCHEMA_VERSION)
      throw new StoreError(`it has schema version ${version ?? 0}: start the broker once`)
  })
}

async function withSide<T>(
  place: PostgresPlace,
  folder: string | undefined,
  work: (side: Side) => Promise<T>,
  prepare: (client: pg.Client) => Promise<void>,
): Promise<T> {
  const outcome = await once(
    place,
    new Primary(place, folder === undefined ? undefined : new Timelines(folder)),
    async (client) => {
      await client.query(PATIENCE)
      await prepare(client)
      // Errors of the work name their place by themselves, which may be the other side.
      return await work(new PostgresSide(placeText({ postgres: place }), client)).then(
        (done) => ({ done }),
        (error: unknown) => ({ error }),
      )
    },
    { isPatient: true },
  )
  if ('error' in outcome) throw outcome.error
  return outcome.done
}

/** A broker whose sessions run on behind its successor has no claim; commands have none either. */
async function requireAlone(client: pg.ClientBase): Promise<void> {
  const end = performance.now() + ENDING_MS
  for (;;) {
    const { rows } = await client.query<{ address: string; since: string }>(
      `select coalesce(host(client_addr), 'this machine') as address,
          to_char(backend_start, 'YYYY-MM-DD HH24:MI:SS TZ') as since
        from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and application_name like 'sallyport%' limit 1`,
    )
    const [other] = rows
    if (!other) return
    if (performance.now() > end)
      throw new StoreError(
        `it is in use (connected from ${other.address} since ${other.since}): stop the broker, and let other commands end first`,
      )
    await sleep(PAUSE_MS)
  }
}

export class PostgresSide implements Side {
  readonly place: string
  readonly hasZeros = false
  readonly #client: pg.ClientBase

  constructor(place: string, client: pg.ClientBase) {
    this.place = place
    this.#client = client
  }

  async tables(): Promise<Map<string, readonly string[]>> {
    const rows = await this.run(
      `select t.tablename::text, array_to_string(array(select a.attname::text from pg_attribute as a
          where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped), ',')
        from pg_tables as t inner join pg_class as c on c.relname = t.tablename and c.relnamespace = current_schema()::regnamespace
        where t.schemaname = current_schema()`,
    )
    return new Map(rows.map(([table, columns]) => [String(table), String(columns).split(',')]))
  }

  async migrate(now: number): Promise<void> {
    await this.#try(() => migratePostgres(this.#client, now, MIGRATIONS))
  }

  async run(text: string, values: readonly Value[] = []): Promise<Row[]> {
    let place = 0
    return await this.#query(
      text.replace(/\?/g, () => `$${++place}`),
      values,
    )
  }

  async insert({ name, columns, isCounted }: Table, rows: readonly Row[]): Promise<void> {
    const names = columns.map((column) => quoted(column.name)).join(', ')
    const lists = columns.map(({ type }, index) => `$${index + 1}::${SERVER_TYPES[type]}[]`).join(', ')
    const values = columns.map((_, index) => rows.map((row) => row[index]))
    const text = `insert into ${quoted(name)} (${names}) ${isCounted ? 'overriding system value ' : ''}select * from unnest(${lists})`
    await this.#query(text, values)
  }

  async clear(tables: readonly Table[]): Promise<void> {
    await this.run(`truncate ${tables.map(({ name }) => quoted(name)).join(', ')}`)
  }

  async counter(table: Table): Promise<bigint> {
    const [row] = await this.run(`select last_value, is_called from ${await this.#sequence(table)}`)
    const [last, isCalled] = row ?? []
    return isCalled ? BigInt(String(last)) : 0n
  }

  async setCounter(table: Table, value: bigint): Promise<void> {
    const sequence = await this.#sequence(table)
    await this.#query('select setval($1::regclass, $2, $3)', [
      sequence,
      value === 0n ? 1n : value,
      value !== 0n,
    ])
  }

  async begin(tables: readonly Table[]): Promise<void> {
    await this.run('begin')
    // Commands need no claim, and wait for this lock until they give up.
    if (tables.length > 0)
      await this.run(`lock table ${tables.map(({ name }) => quoted(name)).join(', ')} in share mode`)
  }

  async commit(): Promise<void> {
    await this.run('commit')
  }

  /** Each connection of a broker or a command reads the settings first, or is seen here. */
  async requireStillAlone(): Promise<void> {
    await this.run('lock table settings in access exclusive mode')
    await this.#try(() => requireAlone(this.#client))
  }

  async #sequence({ name, key }: Table): Promise<string> {
    const [row] = await this.#query('select pg_get_serial_sequence($1, $2)', [name, key[0]])
    return String(row?.[0])
  }

  async #query(text: string, values: readonly unknown[]): Promise<Row[]> {
    const query = {
      text,
      values: [...values],
      rowMode: 'array' as const,
      types: TYPES,
      query_timeout: ANSWER_MS,
    }
    return (await this.#try(() => this.#client.query(query))).rows as unknown as Row[]
  }

  async #try<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw new StoreError(`${this.place}: ${storeErrorOf(error).message}`)
    }
  }
}

const SERVER_TYPES = { integer: 'bigint', text: 'text', blob: 'bytea' } as const
