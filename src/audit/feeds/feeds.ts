/**
 * All receivers of events, each with a feed and a position of its own. Policies:
 *
 * - a receiver without a position is new: it gets the events from now on, and `sink.begin` names the first
 *   row;
 * - a receiver whose position is lost, not readable, or of another log, gets the newest rows again, and an
 *   event reports it; it may have missed the rows before those, and `sink.missed` counts them;
 * - a receiver that is no longer configured has its position removed, and `sink.end` counts its missed rows.
 */
import type { AuditRepository } from '../../store/store.ts'
import type { StoredEvent } from '../chain.ts'
import type { Audit } from '../events/catalogue.ts'
import { type After, type Sink, systemAfter } from '../sink.ts'
import { Feed } from './feed.ts'
import { Positions } from './position.ts'
import { RecentRows } from './recent.ts'
import type { Owner, Register } from './register.ts'

/** Interval of the checks for rows of other processes: a command line beside the broker. */
export const LOOK_MS = 1000
/** Shortest time between two writes of a position: later events are sent twice after a hard stop. */
const WRITE_MS = 200
/** Number of rows that are sent again to a receiver whose position is lost. */
const SENT_AGAIN = 1000

export interface FeedsOptions {
  repository: Pick<AuditRepository, 'range' | 'last'>
  /** Folder of the positions. */
  folder: string
  /** Key and owners of the positions. */
  register: Register
  audit: Pick<Audit, 'record'>
  onError: (error: Error) => void
  after?: After
}

interface Fed {
  name: string
  feed: Feed
  /** Cancels the scheduled write. */
  due: (() => void) | undefined
  writing: Promise<void>
  /** The position that was written last. */
  written: number
}

interface Place {
  sequence: number
  /** Reason for starting anew, which is to be reported. */
  why?: string
  /** Set if a position should exist: rows that are not sent again are reported, too. */
  isLost?: boolean
}

export class Feeds {
  readonly #options: FeedsOptions
  readonly #positions: Positions
  readonly #rows: RecentRows
  readonly #after: After
  #fed: Fed[] = []
  #looks: NodeJS.Timeout | undefined

  constructor(options: FeedsOptions) {
    this.#options = options
    this.#after = options.after ?? systemAfter
    this.#positions = new Positions(options.folder, options.register)
    this.#rows = new RecentRows(options.repository)
  }

  /** In the order of the configuration. */
  get feeds(): readonly Feed[] {
    return this.#fed.map(({ feed }) => feed)
  }

  /**
   * The last row that all receivers have. Undefined if there is no receiver. While receivers are replaced,
   * the old ones count, so that the log keeps the rows that they miss.
   */
  get slowest(): number | undefined {
    return this.#fed.length === 0 ? undefined : Math.min(...this.#fed.map(({ feed }) => feed.position))
  }

  /** Feeds these receivers. `begin`: the row after which new ones begin. Absent for the current last row. */
  async open(sinks: readonly Sink[], begin?: number): Promise<void> {
    await this.#rows.look()
    await this.#positions.open()
    // The restored backup has the receivers, but none of their positions.
    if (begin !== undefined) await this.#positions.own({})
    const told = await this.#begin(sinks, begin ?? this.#rows.head)
    this.#looks = setInterval(() => void this.#look(), LOOK_MS)
    this.#looks.unref()
    for (const tell of told) await tell()
  }

  /** Returns whether it feeds these receivers, in this order. */
  areOf(sinks: readonly Sink[]): boolean {
    return sinks.length === this.#fed.length && this.#fed.every(({ feed }, i) => feed.sink === sinks[i])
  }

  /**
   * Drains the receivers that are not among these as far as they can be reached now, then feeds these; those that it
   * feeds already go on meanwhile. `begin`: as for `open`.
   */
  async replace(sinks: readonly Sink[], begin = this.#rows.head): Promise<void> {
    const stays = ({ feed }: Fed) => sinks.includes(feed.sink)
    await this.#close(this.#fed.filter((one) => !stays(one)))
    for (const tell of await this.#begin(sinks, begin, this.#fed.filter(stays))) await tell()
  }

  /** The last known row. */
  get head(): number {
    return this.#rows.head
  }

  /** Adds events that this process has stored, in their order. */
  stored(events: readonly StoredEvent[]): void {
    this.#rows.add(events)
    for (const { feed } of this.#fed) feed.wake()
  }

  async close(): Promise<void> {
    clearInterval(this.#looks)
    await this.#close(this.#fed)
    this.#fed = []
  }

  async #look(): Promise<void> {
    const before = this.#rows.head
    await this.#rows.look().catch(this.#options.onError)
    if (this.#rows.head > before) for (const { feed } of this.#fed) feed.wake()
  }

  async #close(left: readonly Fed[]): Promise<void> {
    await Promise.all(
      left.map(async (fed) => {
        await fed.feed.close()
        await fed.writing
        fed.due?.()
        await this.#write(fed)
      }),
    )
  }

  /** `running`: those of these that are fed already. Returns functions that report it. */
  async #begin(
    sinks: readonly Sink[],
    begin: number,
    running: readonly Fed[] = [],
  ): Promise<(() => Promise<void>)[]> {
    const told: (() => Promise<void>)[] = []
    const names = this.#positions.names()
    const fed: Fed[] = []
    for (const sink of sinks) {
      const same = running.find(({ feed }) => feed.sink === sink)
      if (same) {
        fed.push(same)
        continue
      }
      const name = this.#positions.nameOf(
        `${sink.identity}${fed.filter((one) => one.feed.sink.identity === sink.identity).length || ''}`,
      )
      const { sequence, why, isLost } = await this.#placeOf(name, begin)
      const one = this.#feedOf(name, sink, sequence)
      fed.push(one)
      if (why === undefined) continue
      await this.#write(one)
      const about = { object_type: sink.type, object: sink.address }
      told.push(() =>
        this.#options.audit.record('sink.begin', {
          ...about,
          reason: `${why}: it gets events from row ${sequence + 1} on`,
        }),
      )
      const { first, count } = await this.#rowsUpTo(sequence)
      if (!isLost || count === 0) continue
      const reason = `${why}: nobody knows which of the rows ${first} to ${sequence} it has had`
      told.push(() => this.#options.audit.record('sink.missed', { ...about, count, reason }))
    }
    this.#fed = fed
    const owners = Object.fromEntries(
      fed.map(({ name, feed: { sink } }): [string, Owner] => [
        name,
        { type: sink.type, address: sink.address },
      ]),
    )
    const gone = names.filter((one) => !Object.hasOwn(owners, one))
    const known = gone.flatMap((name): [string, Owner][] => {
      const owner = this.#positions.ownerOf(name)
      return owner ? [[name, owner]] : []
    })
    // Removed receivers stay registered until that is reported.
    await this.#own({ ...owners, ...Object.fromEntries(known) })
    for (const name of gone) told.push(() => this.#forget(name))
    told.push(() => this.#own(owners))
    for (const one of fed) if (!running.includes(one)) one.feed.start()
    return told
  }

  #feedOf(name: string, sink: Sink, position: number): Fed {
    const about = { object_type: sink.type, object: sink.address }
    const record = (...event: Parameters<Audit['record']>) => {
      this.#options.audit.record(...event).catch(this.#options.onError)
    }
    const one: Fed = {
      name,
      due: undefined,
      writing: Promise.resolve(),
      written: position,
      feed: new Feed({
        sink,
        rows: this.#rows,
        position,
        after: this.#after,
        onPosition: () => this.#writeSoon(one),
        onDown: (reason) => record('sink.down', { ...about, reason }),
        onUp: (count) => record('sink.up', { ...about, count }),
        onMissed: (first, last) =>
          record('sink.missed', {
            ...about,
            count: last - first + 1,
            reason: `rows ${first} to ${last} were removed from the audit log before it had them`,
          }),
      }),
    }
    return one
  }

  /** Returns the row after which a receiver continues. */
  async #placeOf(name: string, begin: number): Promise<Place> {
    const found = this.#positions.read(name)
    if (found === 'missing') return { sequence: begin, why: 'it is new here' }
    const lost = (why: string): Place => ({
      sequence: Math.max(0, this.#rows.head - SENT_AGAIN),
      why,
      isLost: true,
    })
    if (found === 'lost') return lost('its position is gone')
    if (found === 'unreadable') return lost('its position could not be read')
    const { sequence, hash } = found
    if (sequence > this.#rows.head) {
      return lost(`its position was row ${sequence}, which the audit log does not have`)
    }
    const row = await this.#hashOf(sequence)
    if (row !== undefined && row !== hash) {
      return lost(`its position was in another audit log, at row ${sequence}`)
    }
    return { sequence }
  }

  /** Returns the first of the log's rows up to this one, and their number. */
  async #rowsUpTo(sequence: number): Promise<{ first: number; count: number }> {
    const [row] = await this.#options.repository.range(0, 1)
    const first = row?.sequence ?? sequence + 1
    return { first, count: Math.max(0, sequence - first + 1) }
  }

  async #own(owners: Record<string, Owner>): Promise<void> {
    await this.#positions.own(owners).catch(this.#options.onError)
  }

  /** Returns undefined if the row no longer exists. */
  async #hashOf(sequence: number): Promise<string | undefined> {
    if (sequence === 0) return ''
    const [row] = await this.#options.repository.range(sequence, 1)
    return row?.sequence === sequence ? Buffer.from(row.hash).toString('hex') : undefined
  }

  /** Removes a receiver that is no longer configured. */
  async #forget(name: string): Promise<void> {
    const found = this.#positions.read(name)
    const owner = typeof found === 'object' ? found : this.#positions.ownerOf(name)
    if (owner) {
      // Without a valid position, the receiver may have missed all rows.
      const { count } = await this.#rowsUpTo(this.#rows.head)
      await this.#options.audit.record('sink.end', {
        object_type: owner.type,
        object: owner.address,
        count: typeof found === 'object' ? Math.max(0, this.#rows.head - found.sequence) : count,
      })
    }
    this.#positions.remove(name)
  }

  #writeSoon(fed: Fed): void {
    fed.due ??= this.#after(WRITE_MS, () => {
      // Schedule the next write after this one: a slow disk gets no queue.
      fed.writing = this.#write(fed).then(() => {
        fed.due = undefined
        if (fed.feed.position > fed.written) this.#writeSoon(fed)
      })
    })
  }

  async #write(fed: Fed): Promise<void> {
    const { name, feed } = fed
    try {
      const sequence = feed.position
      fed.written = sequence
      const hash = (await this.#hashOf(sequence)) ?? ''
      await this.#positions.write(name, feed.sink, { sequence, hash })
    } catch (error) {
      this.#options.onError(error as Error)
    }
  }
}
