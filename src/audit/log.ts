/**
 * The audit log: stores events as rows of a hash chain in the database, then reports them to the sinks' feeds
 * (feeds/) and the metrics. Fail closed: an event that could not be stored is an error for the caller, which
 * must not act. While the database is away, events are stored in a journal, whose entries become rows when it is
 * back, before all later events.
 */
import type { KeyObject } from 'node:crypto'
import { StoreUnavailableError } from '../store/engine/errors.ts'
import type { AuditRepository, AuditRow, Reach } from '../store/store.ts'
import type { Anchor } from './anchor.ts'
import type { Head, StoredEvent } from './chain.ts'
import { type Appended, ChainEnd } from './chain-end.ts'
import { CHECKPOINT_MS } from './checkpoint.ts'
import { type Audit, type AuditEvent, EVENTS, type EventCode, kindOf } from './events/catalogue.ts'
import { cleanFields } from './events/clean.ts'
import type { EventFields } from './events/fields.ts'
import type { Backlog, Mark } from './journal/backlog.ts'
import { type Doubt, isEnd, JournalError } from './journal/file.ts'
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
/** Milliseconds until the journal is tried again, if the database is there and refuses it. */
const RETRY_MS = 1000

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
  /** Absent if no event outlives an outage of the database. */
  outages?: Outages
}

export interface Outages {
  reach: Reach
  backlog: Backlog
  /** Stores the rows and the mark in one transaction. */
  upload: (rows: AuditRow[], mark: Mark) => Promise<void>
  /** Called if the backlog cannot go up for now, or if a journal was changed. */
  onError: (error: Error) => void
}

export interface Checkpoints {
  /** Ed25519 key. */
  key: KeyObject
  anchor: Pick<Anchor, 'note'>
  /** Called if no checkpoint can be written, or noted, for now: the events themselves are stored. */
  onError: (error: Error) => void
  after?: After
}

export class AuditLog implements Audit {
  readonly #now: () => number
  readonly #onStored: NonNullable<AuditLogOptions['onStored']>
  #waiting: Waiting[] = []
  #writer: Promise<void> | undefined
  readonly #end: ChainEnd
  readonly #checkpoints: Checkpoints | undefined
  readonly #actor: AuditLogOptions['actor']
  readonly #refusals: Refusals | undefined
  readonly #outages: Outages | undefined
  /** Whether the backlog waits for another try. */
  #isPaused = false
  /** Number of refusals that wait for the database. */
  #waitingRefusals = 0
  #signed: Head | undefined
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
    outages,
  }: AuditLogOptions) {
    this.#checkpoints = checkpoints
    this.#now = now
    this.#end = new ChainEnd({ repository, now, key: checkpoints?.key, reach: outages?.reach })
    this.#onStored = onStored
    this.#actor = actor
    this.#refusals = refusals
    if (refusals) refusals.tell = (event) => this.#tellCounted(event)
    this.#outages = outages
    outages?.reach.onChange((away) => {
      if (!away) this.#go()
    })
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
      this.#go()
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
    if (this.#end.isSigned && !always) return
    this.#sealing = true
    this.#go()
    await this.flush()
  }

  /** The row of the last checkpoint that this process has written, if it has. */
  get signed(): Head | undefined {
    return this.#signed
  }

  /**
   * Stores what earlier processes left in their journals. Call it before the first event.
   * @throws Error if the database refuses it
   */
  async open(): Promise<void> {
    await this.adopt()
    if (this.#outages?.backlog.isEmpty === false)
      throw new Error('the journal of an earlier outage cannot be stored in the audit log')
  }

  /**
   * Stores what processes that have died since left in their journals. Resolves when that is done, or waits for the
   * database. One call at a time.
   */
  async adopt(): Promise<void> {
    if (!this.#outages || (await this.#outages.backlog.find()) === 0) return
    this.#go()
    await this.flush()
  }

  /** Stores the waiting and the counted events, and signs them. */
  async close(): Promise<void> {
    for (const event of this.#refusals?.takeAll() ?? []) this.#tellCounted(event)
    await this.checkpoint()
  }

  #go(): void {
    this.#writer ??= this.#write()
  }

  get #isAway(): boolean {
    return this.#outages?.reach.away !== undefined
  }

  /** Whether there is work that can be done now. */
  get #hasWork(): boolean {
    if (this.#waiting.length > 0) return true
    const isBehind = this.#outages?.backlog.isEmpty === false
    return !this.#isAway && !this.#isPaused && (this.#sealing || isBehind)
  }

  async #write(): Promise<void> {
    // Events of one turn of the event loop share a commit.
    await undefined
    while (this.#hasWork) {
      const group = this.#waiting.splice(0, MAX_GROUP)
      // Events that come while the backlog goes up are put behind it.
      if (this.#isAway || this.#outages?.backlog.isEmpty === false) {
        await this.#keep(group)
        if (!this.#isAway && !this.#isPaused) await this.#goUp()
      } else await this.#store(group)
    }
    this.#writer = undefined
  }

  async #store(group: Waiting[]): Promise<void> {
    const sealing = this.#sealing
    this.#sealing = false
    try {
      const { rows, checkpoint } = await this.#end.append(
        group.map(({ event }) => event),
        sealing,
      )
      for (const { resolve } of group) resolve()
      this.#onStored(group.map(({ event }, i) => ({ ...event, sequence: rows[i]!.sequence })))
      if (checkpoint) await this.#signedWith(checkpoint)
      else this.#signSoon()
    } catch (error) {
      // Of one that was back too soon to be noticed the backlog asks first what stands.
      if (this.#isAway || (group.length > 0 && this.#outages && error instanceof StoreUnavailableError)) {
        this.#sealing ||= sealing
        await this.#keep(group, this.#end.doubt)
        return
      }
      const failure = unwritten(error)
      for (const { reject } of group) reject(failure)
      if (sealing) this.#checkpoints?.onError(failure)
    }
  }

  /** Stores the events in the journal; if there is no room for all, those of ends. */
  async #keep(group: Waiting[], doubt?: Doubt): Promise<void> {
    if (group.length === 0) return
    try {
      const events = group.map(({ event }) => event)
      await this.#outages!.backlog.append(events, doubt)
      for (const { resolve } of group) resolve()
    } catch (error) {
      const ends = group.filter(({ event }) => isEnd(event))
      if (0 < ends.length && ends.length < group.length) {
        await this.#keep(ends, doubt)
        group = group.filter((one) => !ends.includes(one))
      }
      const failure = unwritten(error)
      for (const { reject } of group) reject(failure)
    }
  }

  /** Stores the next events of the journal as rows. */
  async #goUp(): Promise<void> {
    const { backlog, upload, onError } = this.#outages!
    try {
      const batch = await backlog.next()
      if (!batch) return
      const { events, mark, isThere } = batch
      const storing = { append: (all: AuditRow[]) => upload(all, mark), isThere }
      const { rows, checkpoint } = await this.#end.append(events, false, storing)
      backlog.done()
      this.#onStored(rows.map(({ sequence }, i) => ({ ...events[i]!, sequence })))
      if (checkpoint) await this.#signedWith(checkpoint)
      else this.#signSoon()
    } catch (error) {
      if (this.#isAway) return
      onError(error as Error)
      // Said once, and what follows can go up.
      if (error instanceof JournalError) return
      this.#isPaused = true
      setTimeout(() => {
        this.#isPaused = false
        this.#go()
      }, RETRY_MS).unref()
    }
  }

  async #signedWith({ row, event }: NonNullable<Appended['checkpoint']>): Promise<void> {
    this.#due?.()
    this.#due = undefined
    this.#signed = row
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
}

const unwritten = (cause: unknown) => new Error('the audit log could not be written', { cause })
