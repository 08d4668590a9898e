/** The end of the audit log's chain, where rows are appended: in their order, and once. */
import { Buffer } from 'node:buffer'
import { type KeyObject, randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { ConflictError, isUniqueViolation, StoreUnavailableError } from '../store/engine/errors.ts'
import type { AuditRepository, AuditRow, Reach } from '../store/store.ts'
import { chainCheckpoint, chainRows, type Head, type StoredEvent } from './chain.ts'
import { CHECKPOINT_ROWS } from './checkpoint.ts'
import type { AuditEvent } from './events/catalogue.ts'
import type { Doubt } from './journal/file.ts'

/** Attempts if another process (a command line beside the broker) appends at the same moment. */
const MAX_ATTEMPTS = 20
/** Milliseconds of the longest pause before the second attempt; each further one may be longer by as much. */
const PAUSE_MS = 2

export interface ChainEndOptions {
  repository: Pick<AuditRepository, 'append' | 'last' | 'range'>
  /** Milliseconds since the epoch. */
  now: () => number
  /** Ed25519 key of checkpoints. Undefined without them. */
  key: KeyObject | undefined
  /** Undefined if the database cannot go away. */
  reach: Pick<Reach, 'check'> | undefined
}

/** How rows are stored, if not by the repository alone. */
export interface Storing {
  append: (rows: AuditRow[]) => Promise<void>
  /** Whether the log has the events already. */
  isThere: () => Promise<boolean>
}

export interface Appended {
  /** Empty if the events were there. */
  rows: AuditRow[]
  /** The checkpoint after the rows, and its event. */
  checkpoint?: { row: AuditRow; event: StoredEvent }
}

export class ChainEnd {
  readonly #options: ChainEndOptions
  #head: Head | undefined
  /** False if the head has to be read from the database first. */
  #headKnown = false
  /**
   * The last row that a checkpoint has signed, as far as this process knows. Undefined if it has written none
   * yet.
   */
  #signed: number | undefined
  /** The rows whose commit has no answer. */
  #unanswered: AuditRow[] = []

  constructor(options: ChainEndOptions) {
    this.#options = options
  }

  /** Whether a checkpoint signs all that this process has stored. */
  get isSigned(): boolean {
    return this.#signed === undefined || this.#signed === this.#head?.sequence
  }

  /** The rows of the last `append`, if it is not known whether they are stored. */
  get doubt(): Doubt | undefined {
    const [first] = this.#unanswered
    const last = this.#unanswered.at(-1)
    return first && last && { first: first.sequence, last: last.sequence, hash: last.hash }
  }

  /** Stores events, and a checkpoint after them if `sealing`, or if one is due. One call at a time. */
  async append(events: readonly AuditEvent[], sealing: boolean, storing?: Storing): Promise<Appended> {
    const { repository, reach } = this.#options
    this.#unanswered = []
    /** Whether the commit of an attempt may stand, or may come late. */
    let mayStand = false
    let chained: { after: Head | undefined; appended: Appended } | undefined
    for (let attempt = 1; ; attempt++) {
      if (await storing?.isThere()) return { rows: [] }
      if (!this.#headKnown) {
        this.#head = await repository.last()
        this.#headKnown = true
      }
      // After the same head the same rows, a checkpoint's time included: a commit that comes late is known by them.
      if (!chained || !isSame(chained.after, this.#head))
        chained = { after: this.#head, appended: this.#chain(events, sealing) }
      const { appended } = chained
      const rows = appended.checkpoint ? [...appended.rows, appended.checkpoint.row] : appended.rows
      const before = this.#head?.sequence
      try {
        this.#unanswered = rows
        await (storing ?? repository).append(rows)
      } catch (error) {
        this.#headKnown = false
        // A refused row is not stored: one like it is another process's, which had the same event to tell.
        mayStand ||= !isUniqueViolation(error) && !(error instanceof ConflictError)
        if (!mayStand) this.#unanswered = []
        if ((await reach?.check()) === false) throw error
        this.#head = await repository.last()
        this.#headKnown = true
        const isStored = mayStand && (await this.#has(rows.at(-1)))
        this.#unanswered = []
        // Another process was faster, and our rows follow its own; or the connection alone was lost.
        const mayRepeat = this.#head?.sequence !== before || error instanceof StoreUnavailableError
        if (!isStored && (!mayRepeat || attempt >= MAX_ATTEMPTS)) throw error
        if (isStored) return this.#noted(appended)
        // For a random time, or the two would meet again and again.
        await sleep(randomInt(PAUSE_MS * attempt + 1))
        continue
      }
      this.#unanswered = []
      this.#head = rows.at(-1)
      return this.#noted(appended)
    }
  }

  /** Whether the row is stored: the commit succeeded, and only its result was lost. */
  async #has(row: AuditRow | undefined): Promise<boolean> {
    if (!row || (this.#head?.sequence ?? 0) < row.sequence) return false
    const [stored] = await this.#options.repository.range(row.sequence, 1)
    return stored?.sequence === row.sequence && Buffer.from(stored.hash).equals(row.hash)
  }

  #noted(appended: Appended): Appended {
    if (appended.checkpoint) this.#signed = appended.checkpoint.row.sequence
    return appended
  }

  /** Returns the rows of `events` after the head, with a checkpoint after them if one is due. */
  #chain(events: readonly AuditEvent[], sealing: boolean): Appended {
    const rows = chainRows(this.#head, events)
    const end = rows.at(-1) ?? this.#head
    this.#signed ??= this.#head?.sequence ?? 0
    const isDue = sealing || (end?.sequence ?? 0) - this.#signed >= CHECKPOINT_ROWS
    if (!this.#options.key || !isDue) return { rows }
    const { row, event } = chainCheckpoint(end, this.#options.now(), this.#options.key)
    return { rows, checkpoint: { row, event: { ...event, sequence: row.sequence } } }
  }
}

function isSame(one: Head | undefined, other: Head | undefined): boolean {
  if (!one || !other) return one === other
  return one.sequence === other.sequence && Buffer.from(one.hash).equals(other.hash)
}
