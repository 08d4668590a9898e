/**
 * Sends the audit log to one receiver: in order, from the row after its position, and again from there after
 * a broken connection. It reads pieces of the log when the receiver has room, so a slow or absent receiver
 * costs no memory and delays no other: the log on the disk is its queue.
 */
import type { StoredEvent } from '../chain.ts'
import { type After, type Connection, Presence, type Sink } from '../sink.ts'
import { Line } from './line.ts'
import type { Piece, RecentRows } from './recent.ts'

/** Number of rows read and sent at a time. */
const ROWS_AT_A_TIME = 200
/** Longest pause between two pieces while it catches up: that of many receivers at a time. */
const MAX_PAUSE_MS = 1000
const FIRST_BACK_OFF_MS = 1000
const MAX_BACK_OFF_MS = 15_000
/** Time that `close` waits for pending events. */
const DRAIN_MS = 3000

export interface FeedOptions {
  sink: Sink
  rows: RecentRows
  /** The last row that the receiver has. */
  position: number
  /** Called when the receiver has all rows up to this one. */
  onPosition: (sequence: number) => void
  onDown: (reason: string) => void
  /** `waited`: rows that the receiver did not have when it was back. */
  onUp: (waited: number) => void
  /** Reports rows that this receiver will not get: they are no longer in the log, or cannot be read. */
  onMissed: (first: number, last: number) => void
  after: After
}

export class Feed {
  readonly #options: FeedOptions
  readonly #presence: Presence
  /** The last row that the receiver has; the last one sent; and the last one that it wants. */
  #settled: number
  #sent: number
  #handed = 0
  #waited = 0
  #wake: () => void = () => undefined
  #giveUp: () => void = () => undefined
  #isClosing = false
  #isOver = false
  /** The last row reported as missed. */
  #missed = 0
  #backOff = FIRST_BACK_OFF_MS
  #running: Promise<void> | undefined
  /** Number of rows that were missed since the start. */
  lost = 0

  constructor(options: FeedOptions) {
    const { position, after, onDown, onUp } = options
    this.#options = options
    this.#settled = position
    this.#sent = position
    this.#presence = new Presence({ after, onDown, onUp: () => onUp(this.#waited) })
  }

  get sink(): Sink {
    return this.#options.sink
  }

  /** The last row that the receiver has. */
  get position(): number {
    return this.#settled
  }

  /** Number of rows that wait for the receiver. */
  get queued(): number {
    return Math.max(0, this.#options.rows.head - this.#sent)
  }

  start(): void {
    this.#running = this.#run()
  }

  /** Reads the log again: there may be new rows. */
  wake(): void {
    this.#wake()
  }

  /** Sends the pending rows, as far as possible within a moment. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#wake()
    let cancel: (() => void) | undefined
    const late = new Promise<void>((resolve) => {
      cancel = this.#options.after(DRAIN_MS, resolve)
    })
    // Sockets and timers of receivers do not keep the process running; this timer does, until they have
    // closed.
    const alive = setInterval(() => undefined, DRAIN_MS)
    await Promise.race([this.#running, late])
    clearInterval(alive)
    cancel?.()
    this.#isOver = true
    this.#giveUp()
    this.#presence.close()
  }

  async #run(): Promise<void> {
    while (!this.#isClosing) {
      try {
        await this.#serve()
      } catch (error) {
        if (this.#isClosing) return
        this.#waited = this.#options.rows.head - this.#settled
        this.#presence.failed((error as Error).message)
        await this.#pause(this.#backOff)
        this.#backOff = Math.min(this.#backOff * 2, MAX_BACK_OFF_MS)
      }
    }
  }

  /** Serves one connection, until it is closed. */
  async #serve(): Promise<void> {
    const line = new Line()
    this.#handed = this.#settled
    this.#sent = this.#settled
    let isCurrent = true
    this.#giveUp = () => line.destroy(new Error('the feed is closed'))
    const connection = await this.#options.sink.connect({
      settled: (sequence) => {
        if (isCurrent && !this.#isOver) this.#settle(sequence)
      },
      broken: (reason) => line.destroy(new Error(reason)),
    })
    try {
      // The feed was closed while the connection was opened.
      if (this.#isOver) return
      this.#presence.succeeded()
      while (await this.#next(connection, line));
    } finally {
      await connection.close()
      isCurrent = false
    }
  }

  /** Sends the next piece. Returns false if all is sent and the feed closes. */
  async #next(connection: Connection, line: Line): Promise<boolean> {
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve
    })
    const { rows } = this.#options
    const begun = performance.eventLoopUtilization()
    const piece = await line.wait(rows.after(this.#sent, ROWS_AT_A_TIME))
    if (!piece) {
      if (this.#isClosing) return false
      await line.wait(woken)
      return true
    }
    this.#account(piece)
    const wanted = piece.events.filter((event) => this.#goesThere(event))
    const last = wanted.at(-1)
    if (last) {
      this.#handed = last.sequence
      await line.wait(connection.send(wanted))
      this.#backOff = FIRST_BACK_OFF_MS
    }
    this.#sent = piece.last
    this.#settle(this.#settled)
    const isFull = piece.last - piece.first + 1 >= ROWS_AT_A_TIME
    if (isFull && this.#sent < rows.head) {
      // Sign-ins share the event loop: all feeds that catch up leave half of it free, however many they are.
      const { active } = performance.eventLoopUtilization(begun)
      await line.wait(this.#pause(Math.min(active, MAX_PAUSE_MS)))
    }
    return true
  }

  #goesThere({ code }: StoredEvent): boolean {
    return this.#options.sink.wants(code)
  }

  #account({ first, unreadable }: Piece): void {
    this.lost += unreadable
    const from = Math.max(this.#sent, this.#missed) + 1
    if (first <= from) return
    this.#missed = first - 1
    this.lost += first - from
    this.#options.onMissed(from, first - 1)
  }

  /**
   * After the last row that it was sent, the receiver also has all the rows that it does not want. It has none that
   * it was not sent, whatever it says.
   */
  #settle(sequence: number): void {
    const reached = sequence >= this.#handed ? Math.max(this.#handed, this.#sent) : sequence
    if (reached <= this.#settled) return
    this.#settled = reached
    this.#options.onPosition(reached)
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.after(ms, resolve)
      // A feed that closes does not wait.
      this.#wake = () => {
        if (!this.#isClosing) return
        cancel()
        resolve()
      }
    })
  }
}
