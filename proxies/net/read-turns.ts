/**
 * How much a connection reads before the others have their turn of the event loop. Without a bound one bulk transfer
 * makes all other sessions wait for milliseconds; a small one costs the transfer a tenth of its speed, so it is small
 * only while there are others.
 */
/** Bytes of a share: when the connections of one session are alone, and else. */
export const READ_SHARE = 256 * 1024
export const READ_SHARE_OF_MANY = 64 * 1024

/** For so long a connection that has read counts. */
const RECENT_MS = 500
/** The two legs of one session. */
const ALONE = 2

export class ReadTurns {
  readonly #now: () => number
  #recent = new Set<object>()
  #before = 0
  #since = 0

  /** `now`: milliseconds, never decreasing. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** This connection has read something. */
  read(connection: object): void {
    this.#recent.add(connection)
  }

  /** This connection is closed. */
  onClosed(connection: object): void {
    this.#recent.delete(connection)
  }

  /** Bytes of the next share. */
  share(): number {
    const now = this.#now()
    if (now - this.#since >= RECENT_MS) {
      this.#since = now
      this.#before = this.#recent.size
      this.#recent = new Set()
    }
    return Math.max(this.#before, this.#recent.size) > ALONE ? READ_SHARE_OF_MANY : READ_SHARE
  }
}

/** The process's. */
export const readTurns = new ReadTurns(() => performance.now())

/** One connection's place among them: past its share it rests until the others have had their turn of the event loop. */
export class ReadTurn {
  readonly #onChange: () => void
  #share = readTurns.share()
  #isResting = false

  /** `onChange`: `isResting` is another. */
  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  get isResting(): boolean {
    return this.#isResting
  }

  /** The connection has read so many bytes. */
  spend(bytes: number): void {
    readTurns.read(this)
    this.#share -= bytes
    if (this.#share > 0 || this.#isResting) return
    this.#isResting = true
    this.#onChange()
    setImmediate(() => {
      this.#isResting = false
      this.#share = readTurns.share()
      this.#onChange()
    })
  }

  /** The connection is closed. */
  onClosed(): void {
    readTurns.onClosed(this)
  }
}
