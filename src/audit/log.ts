/**
 * The audit log: stores events as rows of a hash chain in the database, then reports them to the sinks' feeds
 * (feeds/) and the metrics. Fail closed: an event that could not be stored is an error for the caller, which
 * must not act.
 */
import { type KeyObject, randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AuditRepository, AuditRow } from '../store/store.ts'
import type { Anchor } from './anchor.ts'
import { chainCheckpoint, chainRows, type Head, type StoredEvent } from './chain.ts'
import { CHECKPOINT_MS, CHECKPOINT_ROWS } from './checkpoint.ts'
import { type Audit, type AuditEvent, EVENTS, type EventCode, kindOf } from './events/catalogue.ts'
import { cleanFields } from './events/clean.ts'
import type { EventFields } from './events/fields.ts'
import type { Refusals } from './refusals.ts'
import { type After, systemAfter } from './sink.ts'

/**
 * Limit of events that wait for the database; more are rejected, so that a database that hangs is no memory
 * leak.
 */
const MAX_WAITING = 10_000
/** Limit of refusals among them; further ones are counted: the rest is for the events of sessions. */
const MAX_WAITING_REFUSALS = 1000
/** Events of one commit. */
export const MAX_GROUP = 500
/** Attempts if another process (a command line beside the broker) appends at the same moment. */
const MAX_ATTEMPTS = 20
/** Milliseconds of the longest pause before the second attempt; each further one may be longer by as much. */
const PAUSE_MS = 2

interface Waiting {
  event: AuditEvent
  resolve: () => void
  reject: (error: Error) => void
}

export interface AuditLogOptions {
  repository: AuditRepository
  /** Milliseconds since the epoch. */
  now: () => number
  /** Called with events that are in the log, in their order; must not throw. */
  onStored?: (events: readonly StoredEvent[]) => void
  /** Default actor: for the command line, the user of the system. */
  actor?: Pick<EventFields, 'user' | 'uid' | 'sudo_user'>
  /** Folds repeated refusals. Absent to store each of them. */
  refusals?: Refusals
  /** Absent if the log is chained, but not signed. */
  checkpoints?: Checkpoints
}

export interface Checkpoints {
  /** Ed25519 key. */
  key: KeyObject
  anchor: Pick<Anchor, 'note'>
  /** Called if no checkpoint can be written, or noted, for now: the events themselves are stored. */
  onError: (error: Error) => void
  after?: After
}

interface Appended {
  rows: AuditRow[]
  /** The checkpoint after the rows, and its event. */
  checkpoint?: { row: AuditRow; event: StoredEvent }
}

export class AuditLog implements Audit {
  readonly #repository: AuditRepository
  readonly #now: () => number
  readonly #onStored: NonNullable<AuditLogOptions['onStored']>
  #waiting: Waiting[] = []
  #writer: Promise<void> | undefined
  #head: Head | undefined
  /** False if the head has to be read from the database first. */
  #headKnown = false
  readonly #checkpoints: Checkpoints | undefined
  readonly #actor: AuditLogOptions['actor']
  readonly #refusals: Refusals | undefined
  /** Number of refusals that wait for the database. */
  #waitingRefusals = 0
  /**
   * The last row that a checkpoint has signed, as far as this process knows. Undefined if it has written none
   * yet.
   */
  #signed: number | undefined
  /** Cancels the scheduled checkpoint. */
  #due: (() => void) | undefined
  #sealing = false

  constructor({
    repository,
    now,
    onStored = () => undefined,
    checkpoints,
    actor,
    refusals,
  }: AuditLogOptions) {
    this.#checkpoints = checkpoints
    this.#repository = repository
    this.#now = now
    this.#onStored = onStored
    this.#actor = actor
    this.#refusals = refusals
    if (refusals) refusals.tell = (event) => this.#tellCounted(event)
  }

  /**
   * Resolves when the event is stored, in one transaction with all events that arrived during the previous
   * commit; for a repeated refusal, when it is counted. Rejects if it could not be stored, if too many events
   * wait, and for a code or a field that the catalogue does not have.
   */
  async record(code: EventCode, fields: EventFields): Promise<void> {
    if (!Object.hasOwn(EVENTS, code)) throw new TypeError(`no event is called ${String(code).slice(0, 40)}`)
    const isLocal = this.#actor !== undefined && kindOf(code).fields.includes('uid')
    const told = isLocal ? { ...this.#actor, ...fields } : fields
    const event: AuditEvent = { time: this.#now(), code, fields: cleanFields(told) }
    const isRefusal = this.#refusals?.isRefusal(code) ?? false
    if (this.#refusals && isRefusal) {
      if (this.#refusals.takes(event)) return
      if (this.#waitingRefusals >= MAX_WAITING_REFUSALS) {
        this.#refusals.count(event)
        return
      }
    }
    if (this.#waiting.length >= MAX_WAITING)
      throw new Error('the audit log cannot keep up: too many events wait')
    await this.#stored(event, isRefusal)
  }

  #stored(event: AuditEvent, isRefusal: boolean): Promise<void> {
    if (isRefusal) this.#waitingRefusals++
    const stored = new Promise<void>((resolve, reject) => {
      this.#waiting.push({ event, resolve, reject })
      this.#writer ??= this.#write()
    })
    return isRefusal ? stored.finally(() => this.#waitingRefusals--) : stored
  }

  /** Stores a folded event. One that cannot be stored for now stays counted. */
  #tellCounted(event: AuditEvent): void {
    if (this.#waitingRefusals >= MAX_WAITING_REFUSALS) {
      this.#refusals?.count(event)
      return
    }
    this.#stored({ ...event, fields: cleanFields(event.fields) }, true).catch(() =>
      this.#refusals?.count(event),
    )
  }

  /** Resolves when all events recorded so far are stored or rejected. */
  async flush(): Promise<void> {
    while (this.#writer) await this.#writer
  }

  /**
   * Resolves when a checkpoint signs all that this process has stored, and is noted; at once if there is
   * nothing to sign (unless `always`), or no key. Errors go to `onError`: the next event tries again.
   */
  async checkpoint({ always = false } = {}): Promise<void> {
    await this.flush()
    if (!this.#checkpoints) return
    const isSigned = this.#signed === undefined || this.#signed === this.#head?.sequence
    if (isSigned && !always) return
    this.#sealing = true
    this.#writer ??= this.#write()
    await this.flush()
  }

  /** Stores the waiting and the counted events, and signs them. */
  async close(): Promise<void> {
    for (const event of this.#refusals?.takeAll() ?? []) this.#tellCounted(event)
    await this.checkpoint()
  }

  async #write(): Promise<void> {
    // Events of one turn of the event loop share a commit.
    await undefined
    while (this.#waiting.length > 0 || this.#sealing) {
      const group = this.#waiting.splice(0, MAX_GROUP)
      const sealing = this.#sealing
      this.#sealing = false
      try {
        const { rows, checkpoint } = await this.#append(
          group.map(({ event }) => event),
          sealing,
        )
        for (const { resolve } of group) resolve()
        this.#onStored(group.map(({ event }, i) => ({ ...event, sequence: rows[i]!.sequence })))
        if (checkpoint) await this.#signedWith(checkpoint)
        else this.#signSoon()
      } catch (error) {
        const failure = new Error('the audit log could not be written', { cause: error })
        for (const { reject } of group) reject(failure)
        if (sealing) this.#checkpoints?.onError(failure)
      }
    }
    this.#writer = undefined
  }

  async #signedWith({ row, event }: NonNullable<Appended['checkpoint']>): Promise<void> {
    this.#signed = row.sequence
    this.#due?.()
    this.#due = undefined
    this.#onStored([event])
    await this.#checkpoints?.anchor.note(row).catch((error: Error) => this.#checkpoints?.onError(error))
  }

  #signSoon(): void {
    if (!this.#checkpoints) return
    this.#due ??= (this.#checkpoints.after ?? systemAfter)(CHECKPOINT_MS, () => {
      this.#due = undefined
      void this.checkpoint()
    })
  }

  /** Returns the rows of `events` after the head, with a checkpoint after them if one is due. */
  #chain(events: AuditEvent[], sealing: boolean): Appended {
    const rows = chainRows(this.#head, events)
    const end = rows.at(-1) ?? this.#head
    this.#signed ??= this.#head?.sequence ?? 0
    const isDue = sealing || (end?.sequence ?? 0) - this.#signed >= CHECKPOINT_ROWS
    if (!this.#checkpoints || !isDue) return { rows }
    const { row, event } = chainCheckpoint(end, this.#now(), this.#checkpoints.key)
    return { rows, checkpoint: { row, event: { ...event, sequence: row.sequence } } }
  }

  async #append(events: AuditEvent[], sealing: boolean): Promise<Appended> {
    for (let attempt = 1; ; attempt++) {
      if (!this.#headKnown) {
        this.#head = await this.#repository.last()
        this.#headKnown = true
      }
      const appended = this.#chain(events, sealing)
      const rows = appended.checkpoint ? [...appended.rows, appended.checkpoint.row] : appended.rows
      try {
        await this.#repository.append(rows)
        this.#head = rows.at(-1)
        return appended
      } catch (error) {
        const before = this.#head?.sequence
        this.#headKnown = false
        const head = await this.#repository.last()
        this.#head = head
        this.#headKnown = true
        // The commit succeeded; only its result was lost.
        if (head && Buffer.from(head.hash).equals(rows.at(-1)!.hash)) return appended
        // Another process was faster: its rows are in the chain now, and ours follow them.
        if (head?.sequence === before || attempt >= MAX_ATTEMPTS) throw error
        // For a random time, or the two would meet again and again.
        await sleep(randomInt(PAUSE_MS * attempt + 1))
      }
    }
  }
}
