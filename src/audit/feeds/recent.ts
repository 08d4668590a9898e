/**
 * The latest rows of the audit log in memory, and the earlier ones from the database, for the feeds. Events
 * that this process has just stored are kept for a moment, so that a feed that keeps up needs no query.
 */
import type { AuditRepository } from '../../store/store.ts'
import type { StoredEvent } from '../chain.ts'
import { EVENTS } from '../events/catalogue.ts'

const MAX_RECENT = 500
/** Full pieces from the database that are kept: receivers that catch up side by side read each once. */
const MAX_PIECES = 4

/** A piece of the log. */
export interface Piece {
  /** The piece's readable rows, as events for sinks. */
  events: StoredEvent[]
  /** First and last row of the piece. */
  first: number
  last: number
  /** Number of rows that the broker did not write: `audit verify` reports them. */
  unreadable: number
}

export class RecentRows {
  readonly #repository: Pick<AuditRepository, 'range' | 'last'>
  /** Consecutive rows without a gap. */
  #recent: StoredEvent[] = []
  readonly #pieces = new Map<string, Promise<Piece | undefined>>()
  #head = 0

  constructor(repository: Pick<AuditRepository, 'range' | 'last'>) {
    this.#repository = repository
  }

  /** The last known row. */
  get head(): number {
    return this.#head
  }

  /** Adds events that this process has stored, in their order. */
  add(events: readonly StoredEvent[]): void {
    for (const event of events) {
      const last = this.#recent.at(-1)
      if (last && last.sequence + 1 !== event.sequence) this.#recent = []
      this.#recent.push(event)
      this.#head = Math.max(this.#head, event.sequence)
    }
    if (this.#recent.length > 2 * MAX_RECENT) this.#recent = this.#recent.slice(-MAX_RECENT)
  }

  /** Checks for rows that other processes have stored. */
  async look(): Promise<void> {
    this.#head = Math.max(this.#head, (await this.#repository.last())?.sequence ?? 0)
  }

  /** Returns at most `limit` rows after `sequence`, or undefined if there are none. */
  async after(sequence: number, limit: number): Promise<Piece | undefined> {
    if (sequence >= this.#head) return undefined
    const first = this.#recent[0]
    if (first && first.sequence <= sequence + 1) {
      const from = sequence + 1 - first.sequence
      const events = this.#recent.slice(from, from + limit)
      const last = events.at(-1)
      if (last) return { events, first: sequence + 1, last: last.sequence, unreadable: 0 }
    }
    return await this.#stored(sequence, limit)
  }

  #stored(sequence: number, limit: number): Promise<Piece | undefined> {
    const key = `${sequence} ${limit}`
    const kept = this.#pieces.get(key)
    if (kept) return kept
    const read = this.#read(sequence, limit)
    this.#pieces.set(key, read)
    if (this.#pieces.size > MAX_PIECES) this.#pieces.delete(this.#pieces.keys().next().value!)
    const forget = () => {
      if (this.#pieces.get(key) === read) this.#pieces.delete(key)
    }
    // One that is not full may have more rows the next time.
    read.then((piece) => {
      if (piece === undefined || piece.last - piece.first + 1 < limit) forget()
    }, forget)
    return read
  }

  async #read(sequence: number, limit: number): Promise<Piece | undefined> {
    const rows = await this.#repository.range(sequence + 1, limit)
    const [begin] = rows
    const end = rows.at(-1)
    if (!begin || !end) return undefined
    const events = rows.flatMap(({ json }) => eventOf(json) ?? [])
    return { events, first: begin.sequence, last: end.sequence, unreadable: rows.length - events.length }
  }
}

function eventOf(json: string): StoredEvent | undefined {
  try {
    const event = JSON.parse(json) as StoredEvent
    return Object.hasOwn(EVENTS, event.code) && event.fields !== undefined ? event : undefined
  } catch {
    return undefined
  }
}
