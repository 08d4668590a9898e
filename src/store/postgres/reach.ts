/**
 * The watch over a PostgreSQL server: asks by a connection of its own whether it takes writes. Until it does, all
 * statements fail at once, also those that wait for an answer: behind a dead network each would wait for its own
 * time-out.
 */
import { randomUUID } from 'node:crypto'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { PostgresPlace } from '../../model/database.ts'
import { StoreUnavailableError } from '../engine/errors.ts'
import type { Away, Reach } from '../engine/reach.ts'
import { clientConfig, endClient } from './connection.ts'
import { storeErrorOf } from './errors.ts'
import { requireUsed } from './in-use.ts'
import { type Primary, timelineOf } from './primary.ts'

/** Milliseconds between two questions. */
const PAUSE_MS = 500
/** Milliseconds for an answer, a new connection included: with the pause, what hangs is known within 3 s. */
const ANSWER_MS = 2000
/** Parts in which that time is counted, so that a stall of this process takes one of them at most. */
const TICKS = 20

/** Milliseconds in which a statement that found no room gives back what it had taken itself. */
const GIVE_BACK_MS = 250

/**
 * Commits a record of some bytes, so that a full disk or a lost standby is seen too: what only reads would go on
 * there.
 */
const QUESTION = `select case when pg_is_in_recovery() or current_setting('transaction_read_only') = 'on' then 'it takes no writes'
  else pg_logical_emit_message(true, 'sallyport', '')::text end as answer`

/** Asks for room, too: a server without any still commits what needs none. */
const ROOM = `begin;
  create temporary table sallyport_room on commit drop as select md5(i::text) as filler from generate_series(1, 8000) as i;
  ${QUESTION};
  commit`

export interface ReachOptions {
  place: PostgresPlace
  primary: Primary
  /** Milliseconds since the epoch. */
  now: () => number
  /** Called when it has gone away: connections to it are of no use any more. */
  onAway: () => void
  /** Milliseconds for an answer. Absent for ANSWER_MS. */
  answerMs?: number
}

export class PostgresReach implements Reach {
  readonly #options: ReachOptions
  readonly #listeners = new Set<(away: Away | undefined) => void>()
  /** Callers that wait for an answer. */
  readonly #held = new Set<(error: Error) => void>()
  readonly #closing = new AbortController()
  /** The connections' name, by which the server knows them. */
  readonly #name = `sallyport watch ${randomUUID()}`
  #client: pg.Client | undefined
  #asking: Promise<void> | undefined
  #timeline: string | undefined
  /** Number of the question: an earlier one that had no answer in time makes no connection any more. */
  #turn = 0
  /** Whether the server had no room when it was asked last. */
  #isFull = false
  away: Away | undefined

  constructor(options: ReachOptions) {
    this.#options = options
  }

  /** Begins to watch; `close` ends it. */
  start(): void {
    void this.#watch()
  }

  onChange(listener: (away: Away | undefined) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** A question that was asked before does not count: the database may have gone since. */
  async check(): Promise<boolean> {
    await this.#asking
    if (!this.away) await this.#ask()
    return this.away === undefined
  }

  /**
   * Begins the work unless the database is away, and waits for its end as long as it is there.
   * @throws StoreUnavailableError also for work that may still be done by the server
   */
  async hold<T>(begin: () => Promise<T>): Promise<T> {
    if (this.away) throw unavailable(this.away)
    return await new Promise<T>((resolve, reject) => {
      this.#held.add(reject)
      begin()
        .then(resolve, reject)
        .finally(() => this.#held.delete(reject))
    })
  }

  /**
   * Asks for room, since a statement found none: the database is away if there is none, until there is some. Files of
   * one search, or its shared memory, may have been too large for what others have plenty of.
   */
  async checkRoom(): Promise<void> {
    if (this.away) return
    await sleep(GIVE_BACK_MS)
    this.#isFull = true
    await this.check()
  }

  /** Resolves when its connection is closed, at the latest after the time for an answer. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.#asking
    await this.#drop()
  }

  async #watch(): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      await this.#ask()
      await sleep(PAUSE_MS, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }

  /** Simultaneous calls share a question. */
  #ask(): Promise<void> {
    this.#asking ??= this.#answer().finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  async #answer(): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#turn++
    const late = new AbortController()
    const wasFull = this.#isFull
    try {
      await Promise.race([this.#question(), tooLate(this.#options.answerMs ?? ANSWER_MS, late.signal)])
      // Found without room since it was asked.
      if (this.#isFull && !wasFull) return
      this.#isFull = false
      this.#change(undefined)
    } catch (error) {
      void this.#drop()
      const { message: reason } = error as Error
      const isFull = this.#isFull ? { isFull: true as const } : {}
      if (!this.#closing.signal.aborted && !this.away)
        this.#change({ since: this.#options.now(), reason, ...isFull })
    } finally {
      late.abort()
    }
  }

  async #question(): Promise<void> {
    const kept = this.#client
    try {
      await this.#once()
    } catch (error) {
      // The connection may be gone alone: a new one tells.
      if (!kept || this.#client !== kept) throw error
      void this.#drop()
      await this.#once()
    }
  }

  async #once(): Promise<void> {
    try {
      const client = this.#client ?? (await this.#connect())
      const results = [await client.query<{ answer: string }>(this.#isFull ? ROOM : QUESTION)].flat()
      const answer = results.flatMap(({ rows }) => rows)[0]?.answer ?? ''
      if (!/^[0-9A-F]+\/[0-9A-F]+$/.test(answer))
        throw new Error(`${answer}: it is a standby, or was made read-only`)
    } catch (error) {
      throw new Error(plain(storeErrorOf(error).message))
    }
  }

  async #connect(): Promise<pg.Client> {
    const { place, primary } = this.#options
    const turn = this.#turn
    // Another host may have become the primary.
    if (this.away && primary.isOneOfSeveral) await primary.find()
    if (turn !== this.#turn) throw new Error('it has not answered in time')
    // Ended with the question: a timer of its own would count this process's stalls.
    const config = { ...clientConfig(place, primary.current), connectionTimeoutMillis: 0 }
    const client = new pg.Client(config)
    client.on('error', () => undefined)
    // From now on, so that it ends with a question that has no answer in time.
    this.#client = client
    try {
      await client.connect()
      await primary.require(client)
      await client.query(this.#ending())
      await requireUsed(client)
    } catch (error) {
      if (this.#client === client) this.#client = undefined
      void endClient(client)
      throw error
    }
    this.#meet(timelineOf(client))
    if (this.#closing.signal.aborted) await endClient(client)
    return client
  }

  /**
   * Returns statements that end the connections of questions that were given up: one that waits for a lost standby ends neither with its
   * socket nor by its time-out (postgresql.org/docs/15/warm-standby.html, 27.2.8.3), and each would use up one more.
   */
  #ending(): string {
    return `set application_name = '${this.#name}';
      select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = '${this.#name}' and pid <> pg_backend_pid()`
  }

  /** A server of another timeline has taken over: statements and connections of the one before are of no use. */
  #meet(timeline: string): void {
    const before = this.#timeline
    this.#timeline = timeline
    if (before !== undefined && before !== timeline && !this.away)
      this.#change({ since: this.#options.now(), reason: 'another server has taken over' })
  }

  /** A question that waits is cut off; the server's part of the end is waited for if none does. */
  async #drop(): Promise<void> {
    const client = this.#client
    this.#client = undefined
    if (client) await endClient(client)
  }

  #change(away: Away | undefined): void {
    if (away === this.away) return
    this.away = away
    if (away) {
      for (const reject of this.#held) reject(unavailable(away))
      this.#held.clear()
      this.#options.onAway()
    }
    for (const listener of this.#listeners) listener(away)
  }
}

const unavailable = ({ reason }: Away) => new StoreUnavailableError(reason)

const plain = (message: string) => message.replace(/^the database cannot be used: /, '')

/**
 * Rejects after so many milliseconds in which this process could have seen an answer. A stall counts as one tick: a
 * connection takes several messages there and back, and those of a process that was busy are not the server's fault.
 */
async function tooLate(answerMs: number, signal: AbortSignal): Promise<void> {
  try {
    for (let tick = 0; tick < TICKS; tick++) await sleep(answerMs / TICKS, undefined, { signal })
  } catch {
    return
  }
  // Answers that came during the last one count.
  await setImmediate()
  await setImmediate()
  throw new Error(`it has not answered for ${answerMs / 1000} s`)
}
