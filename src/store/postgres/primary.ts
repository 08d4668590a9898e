/**
 * The primary among the hosts of a database: the one that is no standby. The others take over when it fails, so
 * each new connection asks its host what it is, and all hosts are asked when that one does not answer.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { hostText, type PostgresHost, type PostgresPlace } from '../../model/database.ts'
import { SchemaError, StoreUnavailableError } from '../engine/errors.ts'
import { clientConfig, endClient } from './connection.ts'
import { storeErrorOf } from './errors.ts'
import { clusterOf, type Timelines } from './timelines.ts'

/** Time for a host to say what it is. A host that needs longer is no help to those who wait. */
const ASK_MS = 2000
/** Time for the others after the first answer: one of them may have taken over from it. */
const OTHERS_MS = 500

export class Primary {
  readonly #place: PostgresPlace
  #current: PostgresHost
  #finding: Promise<void> | undefined
  /** The latest timeline of each cluster: a primary of an earlier one was replaced, and came back unasked. */
  readonly #latest = new Map<string, string>()
  /** The timeline of the last connection. */
  #timeline = ''
  readonly #timelines: Timelines | undefined

  /** `timelines`: those of earlier processes; absent if nothing is known of them. */
  constructor(place: PostgresPlace, timelines?: Timelines) {
    this.#place = place
    this.#timelines = timelines
    this.#current = place.hosts[0]!
  }

  /** The host of new connections. */
  get current(): PostgresHost {
    return this.#current
  }

  /** Whether there are other hosts to ask. */
  get isOneOfSeveral(): boolean {
    return this.#place.hosts.length > 1
  }

  /**
   * Asks all hosts at once, and makes the one current that takes writes. If several do, it is the one of the latest
   * timeline among those that answer soon. Callers at the same time share the answers.
   * @throws StoreUnavailableError with what each host said, SchemaError if one of them is no database for us
   */
  find(): Promise<void> {
    this.#finding ??= this.#askAll().finally(() => {
      this.#finding = undefined
    })
    return this.#finding
  }

  /**
   * Checks a new connection: it must be to a primary that was not replaced, and to the server itself.
   * @throws StoreUnavailableError, SchemaError
   */
  async require(client: pg.ClientBase): Promise<void> {
    await requirePrimary(client)
    const timeline = timelineOf(client)
    if (timeline === this.#timeline) return
    const cluster = await clusterOf(client)
    const latest = this.#latest.get(cluster) ?? ''
    if (timeline < latest)
      throw new StoreUnavailableError(
        `it is of timeline ${timeline}, and another host has taken over with ${latest} ` +
          '(if it was put back to an earlier state on purpose, start sallyport again, which says what to remove)',
      )
    await this.#timelines?.see(cluster, timeline)
    // Another connection may have met a later one meanwhile.
    if (timeline < (this.#latest.get(cluster) ?? '')) return
    this.#latest.set(cluster, timeline)
    this.#timeline = timeline
  }

  async #askAll(): Promise<void> {
    const { hosts } = this.#place
    const found: Found[] = []
    const asked = hosts.map(async (host) => {
      found.push({ host, timeline: await this.#ask(host) })
    })
    try {
      await Promise.any(asked)
      await Promise.race([Promise.allSettled(asked), sleep(OTHERS_MS, undefined, { ref: false })])
      this.#current = found.reduce((best, one) => (one.timeline > best.timeline ? one : best)).host
    } catch (error) {
      const { errors } = error as AggregateError & { errors: Error[] }
      const flaw = errors.find((one) => one instanceof SchemaError)
      if (flaw) throw flaw
      const said = hosts.map((host, index) => `${hostText(host)}: ${errors[index]?.message}`)
      throw new StoreUnavailableError(`none of its hosts takes writes (${said.join('; ')})`)
    }
  }

  /** Returns the timeline of a host that takes writes. @throws StoreError about any other */
  async #ask(host: PostgresHost): Promise<string> {
    const client = new pg.Client({
      ...clientConfig(this.#place, host),
      connectionTimeoutMillis: ASK_MS,
      query_timeout: ASK_MS,
    })
    // An error after the answer is of no interest, and without a listener it would end the process.
    client.on('error', () => undefined)
    try {
      await client.connect()
      await this.require(client)
      return timelineOf(client)
    } catch (error) {
      throw storeErrorOf(error)
    } finally {
      // Its answer may never come.
      void endClient(client)
    }
  }
}

interface Found {
  host: PostgresHost
  timeline: string
}

interface Role {
  standby: boolean
  readonly: string
  pid: number
  timeline: string
}

const timelines = new WeakMap<pg.ClientBase, string>()

/** Returns the timeline of a checked connection's server: a failover begins a new one. */
export function timelineOf(client: pg.ClientBase): string {
  return timelines.get(client) ?? ''
}

/**
 * Checks a new connection: it must be to a primary, and to the server itself. A pooler such as PgBouncer gives a
 * connection's statements to ever other connections of its own, so that settings, locks and cursors get lost.
 * @throws StoreUnavailableError, SchemaError
 */
async function requirePrimary(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<Role>(
    `select pg_is_in_recovery() as standby, current_setting('transaction_read_only') as readonly,
      pg_backend_pid() as pid,
      case when pg_is_in_recovery() then '' else substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) end as timeline`,
  )
  const { standby, readonly, pid, timeline } = rows[0]!
  timelines.set(client, timeline)
  // A pooler makes up the number of a connection.
  if (pid !== (client as unknown as { processID: number }).processID)
    throw new SchemaError(
      'a connection pooler such as PgBouncer stands before it, and would lose locks and settings: name the server itself',
    )
  if (standby) throw new StoreUnavailableError('it is a standby, which takes no writes')
  if (readonly !== 'off') throw new StoreUnavailableError('it is read-only')
}
