/**
 * Makes sure that the recording shows the activity on the desktop. A target draws only on request, and is
 * read only while the viewer accepts data. So the target is asked for its whole screen within UNSEEN_MS of
 * each update, whatever the viewer requests, and a viewer that has blocked reads for that long may do nothing
 * until the picture has arrived.
 */
import { UNSEEN_MS } from './limits.ts'

export interface PictureWatchOptions {
  /** Requests the whole screen from the target. */
  ask: () => void
  /** Called when `isUnseen` has changed. */
  onChange: () => void
  /** Milliseconds, never decreasing. */
  now?: () => number
}

export class PictureWatch {
  readonly #options: PictureWatchOptions
  readonly #now: () => number
  /** Set while the target has a request for its whole screen and has not begun an update. */
  #isAsked = false
  /** Set while the target sends its whole screen without requests. */
  #isContinuous = false
  #isInUpdate = false
  /** False before the first request: the viewer is not ready for a picture, and has done nothing. */
  #isBegun = false
  /** When the last update ended without another request. */
  #idleSince = 0
  #askTimer: NodeJS.Timeout | undefined
  /** Since when reads from the target are blocked. */
  #withheldSince: number | undefined
  /** Milliseconds of earlier blocks since the picture was last current. */
  #withheldMs = 0
  #holdTimer: NodeJS.Timeout | undefined
  #isUnseen = false
  #lastAct = Number.NEGATIVE_INFINITY
  /** Set at the end of the session, while its last picture is awaited. */
  #isEager = false

  constructor(options: PictureWatchOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  /** True if the viewer has blocked the picture for too long: no input is allowed until it has arrived. */
  get isUnseen(): boolean {
    return this.#isUnseen
  }

  /** True if the target has a request, and has not begun to answer it. */
  get isAwaited(): boolean {
    return this.#isAsked
  }

  /** Returns the milliseconds until the last activity has had its time to be seen, or 0 if it has. */
  get lookLeft(): number {
    return Math.max(0, this.#lastAct + UNSEEN_MS - this.#now())
  }

  /**
   * Called before input that may change the desktop is forwarded. Requests the picture if it has never been
   * requested.
   */
  acts(): void {
    if (!this.#isBegun) this.#options.ask()
    this.#lastAct = this.#now()
  }

  /** Called when the target's whole screen is requested. */
  asked(): void {
    this.#isBegun = true
    this.#isAsked = true
    this.#settle()
  }

  /** Called when continuous updates of the whole screen are switched on or off. */
  continuous(isOn: boolean): void {
    this.#isContinuous = isOn
    this.#settle()
    this.#await()
  }

  updateBegins(): void {
    this.#isInUpdate = true
    this.#isAsked = false
  }

  updateEnds(): void {
    this.#isInUpdate = false
    this.#settle()
    this.#await()
  }

  /** Called when reads from the target are blocked or resumed. */
  withheld(isWithheld: boolean): void {
    if (isWithheld === (this.#withheldSince !== undefined)) return
    if (isWithheld) {
      this.#withheldSince = this.#now()
      this.#holdTimer ??= setTimeout(() => this.#look(), UNSEEN_MS - this.#withheldMs)
      return
    }
    this.#withheldMs += this.#now() - this.#withheldSince!
    this.#withheldSince = undefined
    this.#settle()
  }

  /** From now on requests the next update as soon as one has ended, because the viewer no longer does. */
  hurry(): void {
    this.#isEager = true
    this.#await()
  }

  stop(): void {
    clearTimeout(this.#askTimer)
    clearTimeout(this.#holdTimer)
  }

  /** True if any drawing of the target arrives at once. */
  get #isWatched(): boolean {
    return (this.#isAsked || this.#isContinuous) && !this.#isInUpdate && this.#withheldSince === undefined
  }

  #settle(): void {
    if (this.#withheldMs === 0 || !this.#isWatched) return
    this.#withheldMs = 0
    if (!this.#isUnseen) return
    this.#isUnseen = false
    this.#options.onChange()
  }

  /** Checks how long reads have been blocked, at most once in that time. */
  #look(): void {
    this.#holdTimer = undefined
    if (this.#withheldSince === undefined) return
    const left = UNSEEN_MS - this.#withheldMs - (this.#now() - this.#withheldSince)
    if (left > 0) {
      this.#holdTimer = setTimeout(() => this.#look(), left)
      return
    }
    if (this.#isUnseen) return
    this.#isUnseen = true
    this.#options.onChange()
  }

  /** Gives the viewer its time to request the next update. */
  #await(): void {
    if (!this.#isBegun || this.#isAsked || this.#isContinuous || this.#isInUpdate) return
    if (this.#isEager || this.#isUnseen) {
      this.#options.ask()
      return
    }
    this.#idleSince = this.#now()
    this.#askTimer ??= setTimeout(() => this.#askLate(), UNSEEN_MS)
  }

  #askLate(): void {
    this.#askTimer = undefined
    if (this.#isAsked || this.#isContinuous || this.#isInUpdate) return
    const left = this.#idleSince + UNSEEN_MS - this.#now()
    if (left > 0) this.#askTimer = setTimeout(() => this.#askLate(), left)
    else this.#options.ask()
  }
}
