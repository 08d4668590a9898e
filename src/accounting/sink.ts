/**
 * Accounting as a receiver of events (src/audit/sink.ts): the audit log is its queue, and its feed keeps the position of
 * the last record that a server has confirmed. So a server that is away loses nothing that retention leaves in the log,
 * a hard stop sends the last records again, and nothing is kept in memory.
 */
import type { StoredEvent } from '../audit/chain.ts'
import type { EventCode } from '../audit/events/catalogue.ts'
import {
  type After,
  type Connection,
  type ConnectionListener,
  type Sink,
  systemAfter,
} from '../audit/sink.ts'
import { type AccountingRecord, kindOfRecord, recordOf } from './record.ts'
import { type AccountingSender, RecordRefused } from './sender.ts'

/** Records sent at a time, each of another session: those of one session keep their order. */
const LANES = 16
/** Times that a server may refuse a record before it is left out. */
const MAX_REFUSALS = 3
/** Sessions noted as ended since the last round of interim records. */
const MAX_ENDED = 10_000

export interface AccountingSinkOptions {
  type: 'radius' | 'tacacs'
  /** For people: the name of the object. */
  address: string
  /** Id of the object: its position stays when it is renamed, or gets other servers. */
  id: string
  sender: AccountingSender
  /** Records that the server gets. Absent for all. */
  concerns?: (record: AccountingRecord) => boolean
  /** Interim records: their interval, and the sessions that run. Absent for none. */
  interim?: { intervalMs: number; running: () => Promise<AccountingRecord[]> }
  /** Returns the Class attributes that the server gets back with the records of a session. Absent for none. */
  classesOf?: (record: AccountingRecord) => Promise<readonly Uint8Array[]>
  /** Called for a record that the server refuses for good. */
  onRefused: (record: AccountingRecord, reason: string) => void
  after?: After
}

interface Entry {
  sequence: number
  record: AccountingRecord
}

export class AccountingSink implements Sink {
  readonly type: 'radius' | 'tacacs'
  readonly address: string
  readonly identity: string
  readonly #options: AccountingSinkOptions
  /** The record on which the last connection failed: the next one begins with it. */
  #failed: Entry | undefined
  /** Refusals of one record. */
  #refused = { sequence: 0, times: 0 }

  constructor(options: AccountingSinkOptions) {
    this.#options = options
    this.type = options.type
    this.address = options.address
    this.identity = `accounting ${options.type} ${options.id}`
  }

  wants(code: EventCode): boolean {
    const kind = kindOfRecord(code)
    return kind !== undefined && this.#options.sender.kinds.includes(kind)
  }

  async connect(listener: ConnectionListener): Promise<Connection> {
    const abort = new AbortController()
    await this.#options.sender.reach(abort.signal)
    // A server that accepts connections and confirms nothing is not back: a record is what proves it.
    const failed = this.#failed
    if (failed) await this.#confirm(failed, abort.signal)
    this.#failed = undefined
    return new AccountingConnection(this.#options, listener, abort, (entry) =>
      entry.sequence === failed?.sequence ? Promise.resolve() : this.#confirm(entry, abort.signal),
    )
  }

  async #confirm(entry: Entry, signal: AbortSignal): Promise<void> {
    const { record, sequence } = entry
    const { sender, classesOf } = this.#options
    try {
      const classes = record.session === '' ? [] : ((await classesOf?.(record)) ?? [])
      await sender.send(classes.length === 0 ? record : { ...record, classes }, signal)
    } catch (error) {
      const isRefused = error instanceof RecordRefused
      const times = !isRefused ? 0 : this.#refused.sequence === sequence ? this.#refused.times + 1 : 1
      if (isRefused) this.#refused = { sequence, times }
      if (times < MAX_REFUSALS) {
        if (!signal.aborted && (this.#failed?.sequence ?? Number.POSITIVE_INFINITY) > sequence)
          this.#failed = entry
        throw error
      }
      this.#options.onRefused(record, (error as Error).message)
    }
  }
}

class AccountingConnection implements Connection {
  readonly #options: AccountingSinkOptions
  readonly #listener: ConnectionListener
  readonly #abort: AbortController
  readonly #confirm: (entry: Entry) => Promise<void>
  readonly #after: After
  /** Settles when the records under way are answered: rounds of interim records stand in the same queue. */
  #busy: Promise<void> = Promise.resolve()
  #ended = new Set<string>()
  #cancel: () => void = () => undefined
  #isClosed = false

  constructor(
    options: AccountingSinkOptions,
    listener: ConnectionListener,
    abort: AbortController,
    confirm: (entry: Entry) => Promise<void>,
  ) {
    this.#options = options
    this.#listener = listener
    this.#abort = abort
    this.#confirm = confirm
    this.#after = options.after ?? systemAfter
    this.#schedule()
  }

  send(events: readonly StoredEvent[]): Promise<void> {
    return this.#inTurn(async () => {
      const entries = events.map((event) => ({ sequence: event.sequence, record: this.#recordOf(event) }))
      const open = new Set(entries.map(({ sequence }) => sequence))
      const settle = (sequence: number) => {
        open.delete(sequence)
        const [first] = open
        const last = entries.findLast((entry) => first === undefined || entry.sequence < first)
        if (last) this.#listener.settled(last.sequence)
      }
      for (const { sequence, record } of entries) if (!record) open.delete(sequence)
      const known = entries.flatMap(({ sequence, record }) => (record ? [{ sequence, record }] : []))
      await inLanes(known, async (entry) => {
        await this.#confirm(entry)
        if (entry.record.kind === 'stop' && this.#ended.size < MAX_ENDED)
          this.#ended.add(entry.record.session)
        settle(entry.sequence)
      })
      const last = events.at(-1)
      if (last) this.#listener.settled(last.sequence)
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancel()
    this.#abort.abort()
    await this.#busy
    await this.#options.sender.close()
  }

  #recordOf(event: StoredEvent): AccountingRecord | undefined {
    const record = recordOf(event)
    return record && (this.#options.concerns?.(record) ?? true) ? record : undefined
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#busy.then(work)
    this.#busy = done.catch(() => undefined)
    return done
  }

  #schedule(): void {
    const { interim } = this.#options
    if (!interim || this.#isClosed) return
    this.#cancel = this.#after(interim.intervalMs, () => {
      this.#inTurn(() => this.#report(interim)).then(
        () => this.#schedule(),
        (error: Error) => this.#listener.broken(error.message),
      )
    })
  }

  /** Reports the sessions that run. A session whose start or end the server may not have yet is left to these. */
  async #report({ intervalMs, running }: NonNullable<AccountingSinkOptions['interim']>): Promise<void> {
    const records = (await running()).filter(
      (record) =>
        record.kind === 'interim' &&
        record.elapsed >= intervalMs &&
        !this.#ended.has(record.session) &&
        (this.#options.concerns?.(record) ?? true),
    )
    this.#ended = new Set()
    const { sender } = this.#options
    await inLanes(
      records.map((record) => ({ record })),
      async ({ record }) => {
        if (this.#isClosed) return
        await sender.send(record, this.#abort.signal).catch((error) => {
          // The next round says the same, and more: no reason to stop.
          if (!(error instanceof RecordRefused)) throw error
        })
      },
    )
  }
}

/** Works on entries of several sessions at a time, in order within each. Rejects when those under way have ended. */
async function inLanes<E extends { record: AccountingRecord }>(
  entries: readonly E[],
  work: (entry: E) => Promise<void>,
): Promise<void> {
  // The bastion's own start and end stand between what was before and after.
  const own = entries.findIndex(({ record }) => record.session === '')
  if (own >= 0 && entries.length > 1) {
    await inLanes(entries.slice(0, own), work)
    await inLanes(entries.slice(own, own + 1), work)
    await inLanes(entries.slice(own + 1), work)
    return
  }
  const sessions = [...Map.groupBy(entries, ({ record }) => record.session).values()]
  let failure: Error | undefined
  const lane = async () => {
    for (let next = sessions.shift(); next && !failure; next = sessions.shift()) {
      for (const entry of next) {
        if (failure) return
        try {
          await work(entry)
        } catch (error) {
          failure ??= error as Error
        }
      }
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  if (failure) throw failure
}
