/**
 * The events that the audit log does not have yet, since the database was away: this process's journal, and those of
 * earlier ones. Each entry goes up once: its number is stored in the transaction of its rows (`mark`), and rows that
 * were committed without an answer are looked for.
 */
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { ChangedError } from '../../store/engine/errors.ts'
import type { AuditRepository, AuditRow, SettingRepository, Store } from '../../store/store.ts'
import type { AuditEvent } from '../events/catalogue.ts'
import { type Doubt, type Entry, Journal, JournalError, type JournalVault, journalsIn } from './file.ts'

/** Events that go up in one transaction, unless one entry has more. */
const BATCH = 500

export interface BacklogOptions {
  /** Folder of the journals. */
  folder: string
  vault: JournalVault
  settings: Pick<SettingRepository, 'get' | 'remove'>
  audit: Pick<AuditRepository, 'range'>
  /** Milliseconds since the epoch. */
  now: () => number
  /** Bytes of a journal. Absent for MAX_JOURNAL_BYTES. */
  maximum?: number
}

/** A setting that is stored with the rows of a batch: how far the journal has gone up. */
export interface Mark {
  name: string
  /** Undefined if there is none yet. */
  before: Uint8Array | undefined
  value: Uint8Array
  /** Whether another process has stored the whole journal: it removes the file, and then the mark. */
  isFinished: () => Promise<boolean>
}

/**
 * Returns a function that stores rows and their mark in one transaction, if the mark is the one that was read: of two
 * processes that store the same entries one alone succeeds, and the other has a ChangedError.
 */
export function uploadTo(store: Pick<Store, 'transaction'>): (rows: AuditRow[], mark: Mark) => Promise<void> {
  return (rows, { name, before, value, isFinished }) =>
    store.transaction(async ({ audit, settings }) => {
      if (!(await settings.replace(name, before, value)) || (await isFinished()))
        throw new ChangedError('journal')
      await audit.append(rows)
    })
}

/** Entries that go up together. */
export interface Batch {
  events: AuditEvent[]
  mark: Mark
  /** Whether the log has them already. */
  isThere: () => Promise<boolean>
}

export class Backlog {
  readonly #options: BacklogOptions
  /** In the order in which they go up: those of earlier processes as they were found, and this process's own. */
  #journals: Journal[] = []
  #own: Journal | undefined
  /** Those that are going up. */
  #entries: Entry[] = []
  /** The one after them, if it was read already. */
  #ahead: Entry | undefined
  #flaw: JournalError | undefined
  /** Marks of journals that are no more: the database may fail before one is removed. */
  readonly #spentMarks: string[] = []
  /** The last events of sessions in journals of earlier processes, by session. */
  readonly ends = new Map<string, AuditEvent>()
  /** Number of events that this process has written since it was asked last. */
  #written = 0

  constructor(options: BacklogOptions) {
    this.#options = options
  }

  /** Finds the journals of processes that have died. Returns the number of those that were not known yet. */
  async find(): Promise<number> {
    const { folder, vault } = this.#options
    let found = 0
    for (const id of await journalsIn(folder)) {
      if (this.#journals.some((known) => known.id === id)) continue
      const journal = await Journal.open(folder, id, vault)
      if (!journal) continue
      this.#journals.push(journal)
      found++
    }
    return found
  }

  get isEmpty(): boolean {
    return this.#journals.length === 0 && this.#spentMarks.length === 0
  }

  takeWritten(): number {
    const written = this.#written
    this.#written = 0
    return written
  }

  /** Resolves when the events are on the disk. @throws JournalError if they are not */
  async append(events: readonly AuditEvent[], doubt?: Doubt): Promise<void> {
    if (!this.#own) {
      const { folder, vault, maximum, now } = this.#options
      // Sorts by time, like the journals of earlier processes.
      const id = `${now().toString(16).padStart(12, '0')}${randomBytes(10).toString('hex')}`
      this.#own = await Journal.create(folder, id, vault, maximum)
      this.#journals.push(this.#own)
    }
    await this.#own.append(events, doubt)
    this.#written += events.length
  }

  /**
   * Returns the batch that is next, of the same entries until `done`. Undefined if all journals are empty: they are removed.
   * @throws JournalError once for a journal that was changed, which is set aside: the entries before are in the log
   */
  async next(): Promise<Batch | undefined> {
    for (;;) {
      await this.#removeSpentMarks()
      const [journal] = this.#journals
      if (!journal) return undefined
      if (this.#entries.length === 0) await this.#read(journal)
      if (this.#entries.length > 0) return await this.#batchOf(journal, this.#entries)
      this.#journals.shift()
      if (journal === this.#own) this.#own = undefined
      const flaw = this.#flaw
      this.#flaw = undefined
      const keptAs = flaw ? await journal.setAside() : await journal.remove()
      this.#spentMarks.push(markName(journal))
      if (flaw) throw new JournalError(`${flaw.message}; it is kept as ${keptAs}`)
    }
  }

  async #removeSpentMarks(): Promise<void> {
    for (let [name] = this.#spentMarks; name !== undefined; [name] = this.#spentMarks) {
      await this.#options.settings.remove(name)
      this.#spentMarks.shift()
    }
  }

  /** Notes that the log has the batch. */
  done(): void {
    this.#entries = []
  }

  /** Closes the files; their events stay for the next process. */
  async close(): Promise<void> {
    for (const journal of this.#journals) await journal.close()
    this.#journals = []
    this.#own = undefined
  }

  /** Reads the entries that go up together. Those that were read before a failure go up first. */
  async #read(journal: Journal): Promise<void> {
    const entries = this.#entries
    let count = 0
    while (count < BATCH) {
      const entry = this.#ahead ?? (await this.#entry(journal))
      this.#ahead = undefined
      if (!entry) break
      if (entry.doubt && entries.length > 0) {
        this.#ahead = entry
        break
      }
      entries.push(entry)
      count += entry.events.length
      // Whether its rows are there is asked for it alone.
      if (entry.doubt) break
    }
    if (journal !== this.#own) this.#noteEnds(entries)
  }

  #noteEnds(entries: readonly Entry[]): void {
    for (const event of entries.flatMap(({ events }) => events)) {
      const { session } = event.fields
      if (event.code === 'session.close' && session !== undefined) this.ends.set(String(session), event)
    }
  }

  async #batchOf(journal: Journal, entries: readonly Entry[]): Promise<Batch> {
    const name = markName(journal)
    const last = entries.at(-1)!
    const before = await this.#options.settings.get(name)
    const marked = numberIn(before)
    const isFinished = async () => journal !== this.#own && (await journal.isRemoved())
    return {
      // Some may have gone up before another process ended.
      events: entries.filter(({ number }) => number > marked).flatMap(({ events }) => events),
      mark: { name, before, value: Buffer.from(String(last.number)), isFinished },
      isThere: async () =>
        (await isFinished()) ||
        numberIn(await this.#options.settings.get(name)) >= last.number ||
        (await this.#stands(last.doubt)),
    }
  }

  /** Returns undefined at the end, and before what was changed. */
  async #entry(journal: Journal): Promise<Entry | undefined> {
    if (this.#flaw) return undefined
    try {
      return await journal.next()
    } catch (error) {
      if (!(error instanceof JournalError)) throw error
      this.#flaw = error
      return undefined
    }
  }

  async #stands(doubt: Doubt | undefined): Promise<boolean> {
    if (!doubt) return false
    const [row] = await this.#options.audit.range(doubt.last, 1)
    return row?.sequence === doubt.last && Buffer.from(row.hash).equals(doubt.hash)
  }
}

/** Number of the last entry that has gone up. */
const numberIn = (mark: Uint8Array | undefined) => (mark ? Number(Buffer.from(mark).toString()) : 0)

const markName = ({ id }: Journal) => `journal.${id}`
