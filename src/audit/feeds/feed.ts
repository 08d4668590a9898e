/**
 * Brings the audit log to one receiver: in order, from the row behind its position, again from there whenever a
 * connection broke. It reads pieces of the log when the receiver has room, so that one that is slow or away costs no
 * memory and holds up nobody: the log on the disk is its queue.
 */
import type { StoredEvent } from '../chain.ts'
import { type After, type Connection, Presence, type Sink } from '../sink.ts'
import { Line } from './line.ts'
import type { Piece, RecentRows } from './recent.ts'

/** Rows that are read and sent at a time. */
const ROWS_AT_A_TIME = 200
/** Between two of them while it catches up: the event loop is everybody's. */
const CATCH_UP_PAUSE_MS = 20
const FIRST_BACK_OFF_MS = 1000
const MAX_BACK_OFF_MS = 15_000
/** How long `close` waits for what can still be sent. */
const DRAIN_MS = 3000

export interface FeedOptions {
  sink: Sink
  rows: RecentRows
  /** The last row that the receiver has. */
  position: number
  /** The receiver has all up to this row. */
  onPosition: (sequence: number) => void
  onDown: (reason: string) => void
  /** `waited`: rows that it did not have when it was found to be back. */
  onUp: (waited: number) => void
  /** Rows that this receiver will not get: they are not in the log any more, or not to be read. */
  onMissed: (first: number, last: number) => void
  after: After
}

export class Feed {
  readonly #options: FeedOptions
  readonly #presence: Presence
  /** The receiver has these; it was handed those; and those of which it wants something. */
  #settled: number
  #sent: number
  #handed = 0
  #waited = 0
  #wake: () => void = () => undefined
  #giveUp: () => void = () => undefined
  #isClosing = false
  #isOver = false
  /** The last row of which it was told that it will not get it. */
  #missed = 0
  #backOff = FIRST_BACK_OFF_MS
  #running: Promise<void> | undefined
  /** Rows that it will not get, since the start. */
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

  /** Rows that wait for it. */
  get queued(): number {
    return Math.max(0, this.#options.rows.head - this.#sent)
  }

  start(): void {
    this.#running = this.#run()
  }

  /** There may be new rows. */
  wake(): void {
    this.#wake()
  }

  /** Sends what there is, as far as it can be within a moment. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#wake()
    let cancel: (() => void) | undefined
    const late = new Promise<void>((resolve) => {
      cancel = this.#options.after(DRAIN_MS, resolve)
    })
    // Sockets and timers of receivers keep no process alive: this does, so that it ends behind them, and not amid.
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

  /** One connection, to its end. */
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
      // what was late to connect has another feed by now
      if (this.#isOver) return
      this.#presence.succeeded()
      while (await this.#next(connection, line));
    } finally {
      await connection.close()
      isCurrent = false
    }
  }

  /** False: all is sent, and it closes. */
  async #next(connection: Connection, line: Line): Promise<boolean> {
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve
    })
    const { rows } = this.#options
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
    if (isFull && this.#sent < rows.head) await line.wait(this.#pause(CATCH_UP_PAUSE_MS))
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

  /** With the last one that it was given, it has all the rows that it does not want, too. */
  #settle(sequence: number): void {
    const reached = sequence >= this.#handed ? Math.max(sequence, this.#sent) : sequence
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
