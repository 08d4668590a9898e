/**
 * The audit log: events become rows of a hash chain in the database; once they stand there they go out to the
 * sinks. Fail closed: an event that could not be stored is an error for whoever wanted to act.
 */
import type { AuditRepository, AuditRow } from '../store/store.ts'
import { type Audit, type AuditEvent, EVENTS, type EventCode, type EventFields } from './catalogue.ts'
import { chainRows, type StoredEvent } from './chain.ts'
import { cleanFields } from './clean.ts'
import type { Sink } from './sink.ts'

/** Events that may wait for the database; more are refused, so that a database that hangs is no memory leak. */
const MAX_WAITING = 10_000
/** Events of one commit. */
const MAX_GROUP = 500
/** Attempts when another process (a command line beside the broker) appended at the same moment. */
const MAX_ATTEMPTS = 5

interface Waiting {
  event: AuditEvent
  resolve: () => void
  reject: (error: Error) => void
}

export interface AuditLogOptions {
  repository: AuditRepository
  /** Milliseconds since the epoch. */
  now: () => number
  sinks?: readonly Sink[]
  /** A sink threw, which is a fault of the program; the event is stored and the other sinks have it. */
  onSinkError?: (error: Error, sink: Sink) => void
}

export class AuditLog implements Audit {
  readonly #repository: AuditRepository
  readonly #now: () => number
  readonly #onSinkError: AuditLogOptions['onSinkError']
  #sinks: readonly Sink[]
  #waiting: Waiting[] = []
  #writer: Promise<void> | undefined
  #head: Pick<AuditRow, 'sequence' | 'hash'> | undefined
  /** False: the head has to be read from the database first. */
  #headKnown = false

  constructor({ repository, now, sinks = [], onSinkError }: AuditLogOptions) {
    this.#repository = repository
    this.#now = now
    this.#sinks = sinks
    this.#onSinkError = onSinkError
  }

  get sinks(): readonly Sink[] {
    return this.#sinks
  }

  /** Events that are stored from now on go to these; the ones before are not closed. */
  setSinks(sinks: readonly Sink[]): void {
    this.#sinks = sinks
  }

  /**
   * Resolves when the event is stored, with all that arrived while the commit before was under way in one
   * transaction. Rejects when it could not be stored, when too many events wait, and for a code or a field that
   * the catalogue does not know.
   */
  async record(code: EventCode, fields: EventFields): Promise<void> {
    if (!Object.hasOwn(EVENTS, code)) throw new TypeError(`no event is called ${String(code).slice(0, 40)}`)
    const event: AuditEvent = { time: this.#now(), code, fields: cleanFields(fields) }
    if (this.#waiting.length >= MAX_WAITING)
      throw new Error('the audit log cannot keep up: too many events wait')
    await new Promise<void>((resolve, reject) => {
      this.#waiting.push({ event, resolve, reject })
      this.#writer ??= this.#write()
    })
  }

  /** Resolves when all that was recorded before is stored or refused. */
  async flush(): Promise<void> {
    while (this.#writer) await this.#writer
  }

  /** Stores what waits and closes the sinks. */
  async close(): Promise<void> {
    await this.flush()
    await Promise.all(this.#sinks.map((sink) => sink.close()))
  }

  async #write(): Promise<void> {
    // events of one turn of the event loop share a commit
    await undefined
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, MAX_GROUP)
      try {
        const rows = await this.#append(group.map(({ event }) => event))
        for (const { resolve } of group) resolve()
        for (const [i, { event }] of group.entries()) this.#fanOut({ ...event, sequence: rows[i]!.sequence })
      } catch (error) {
        const failure = new Error('the audit log could not be written', { cause: error })
        for (const { reject } of group) reject(failure)
      }
    }
    this.#writer = undefined
  }

  async #append(events: AuditEvent[]): Promise<AuditRow[]> {
    for (let attempt = 1; ; attempt++) {
      if (!this.#headKnown) {
        this.#head = await this.#repository.last()
        this.#headKnown = true
      }
      const rows = chainRows(this.#head, events)
      try {
        await this.#repository.append(rows)
        this.#head = rows.at(-1)
        return rows
      } catch (error) {
        const before = this.#head?.sequence
        this.#headKnown = false
        const head = await this.#repository.last()
        this.#head = head
        this.#headKnown = true
        // the commit was done, only its answer was lost
        if (head && Buffer.from(head.hash).equals(rows.at(-1)!.hash)) return rows
        // another process was faster: its rows are the chain now, ours go behind them
        if (head?.sequence === before || attempt >= MAX_ATTEMPTS) throw error
      }
    }
  }

  #fanOut(event: StoredEvent): void {
    for (const sink of this.#sinks) {
      try {
        sink.send(event)
      } catch (error) {
        this.#onSinkError?.(error as Error, sink)
      }
    }
  }
}
