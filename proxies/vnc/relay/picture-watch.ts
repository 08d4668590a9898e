/**
 * Nothing is done unseen: knows whether the recording gets to see what is done on the desktop. A target draws for who
 * asks, and is read while somebody takes it: so whatever the viewer asks for, the target is asked for its whole screen
 * again within UNSEEN_MS of each update, and who has kept it from being read for so long does nothing until the picture has
 * come through.
 */
import { UNSEEN_MS } from './limits.ts'

export interface PictureWatchOptions {
  /** The target is to be asked for its whole screen. */
  ask: () => void
  /** `isUnseen` has changed. */
  onChange: () => void
  /** Milliseconds, never decreasing. */
  now?: () => number
}

export class PictureWatch {
  readonly #options: PictureWatchOptions
  readonly #now: () => number
  /** The target was asked for its whole screen since its last update began. */
  #isAsked = false
  /** It sends its whole screen of its own accord. */
  #isContinuous = false
  #isInUpdate = false
  /** Nobody asks yet: the viewer is not ready for a picture, and has done nothing. */
  #isBegun = false
  /** Since then nothing has been asked. */
  #idleSince = 0
  #askTimer: NodeJS.Timeout | undefined
  /** Since then the target is not read. */
  #withheldSince: number | undefined
  /** Before that, since the picture was last as it should be. */
  #withheldMs = 0
  #holdTimer: NodeJS.Timeout | undefined
  #isUnseen = false
  #lastAct = Number.NEGATIVE_INFINITY
  /** The session ends, and its last picture is waited for. */
  #isEager = false

  constructor(options: PictureWatchOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  /** The viewer has kept the picture back for too long: nothing may be done until it has come through. */
  get isUnseen(): boolean {
    return this.#isUnseen
  }

  /** The target has been asked, and has not begun to answer. */
  get isAwaited(): boolean {
    return this.#isAsked
  }

  /** Milliseconds until what was done last has had its time to be seen; 0: it has. */
  get lookLeft(): number {
    return Math.max(0, this.#lastAct + UNSEEN_MS - this.#now())
  }

  /** Something is passed on that may change the desktop: before that the target has been asked for its picture once. */
  acts(): void {
    if (!this.#isBegun) this.#options.ask()
    this.#lastAct = this.#now()
  }

  /** The target is asked for its whole screen. */
  asked(): void {
    this.#isBegun = true
    this.#isAsked = true
    this.#settle()
  }

  /** The target is told to send its whole screen of its own accord, or not to any more. */
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

  /** The target is not read, or is read again. */
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

  /** From now on the target is asked whenever it has sent what it was asked for: the viewer asks no more. */
  hurry(): void {
    this.#isEager = true
    this.#await()
  }

  stop(): void {
    clearTimeout(this.#askTimer)
    clearTimeout(this.#holdTimer)
  }

  /** Whatever the target draws next comes at once. */
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

  /** The target is not read for long: once in that time at most. */
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

  /** An update has ended: the viewer has its time to ask for the next. */
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
