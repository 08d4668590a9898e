/**
 * Bounds how much a connection reads before the others have their turn of the event loop. Without a bound one
 * bulk transfer delays all other sessions by milliseconds; a small bound costs the transfer a tenth of its
 * speed, so it is small only while there are other sessions.
 */
/** Bytes of a share: while the connections of one session are alone, and otherwise. */
export const READ_SHARE = 256 * 1024
export const READ_SHARE_OF_MANY = 64 * 1024

/** How long a connection counts as busy after a read. */
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

  /** Counts a connection that has read. */
  read(connection: object): void {
    this.#recent.add(connection)
  }

  /** Forgets a closed connection. */
  onClosed(connection: object): void {
    this.#recent.delete(connection)
  }

  /** Returns the bytes of the next share. */
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

/** The one of this process. */
export const readTurns = new ReadTurns(() => performance.now())

/** One connection's turn: after its share it rests until the others have had their turn of the event loop. */
export class ReadTurn {
  readonly #onChange: () => void
  #share = readTurns.share()
  #isResting = false

  /** `onChange` is called when `isResting` has changed. */
  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  get isResting(): boolean {
    return this.#isResting
  }

  /**
   * Counts bytes that the connection has read. `isEmpty`: there were no more, so that the others have their
   * turn without a rest.
   */
  spend(bytes: number, isEmpty = false): void {
    readTurns.read(this)
    this.#share = isEmpty ? readTurns.share() : this.#share - bytes
    if (this.#share > 0 || this.#isResting) return
    this.#isResting = true
    this.#onChange()
    setImmediate(() => {
      this.#isResting = false
      this.#share = readTurns.share()
      this.#onChange()
    })
  }

  /** Forgets the connection, which is closed. */
  onClosed(): void {
    readTurns.onClosed(this)
  }
}
