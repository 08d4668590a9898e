/**
 * Limits the duration and the idle time of a session: options of the connection policy. The user is warned
 * before. Signs of the user are counted on the data path and checked by a timer, so that the limits cost
 * nothing there.
 */
import type { SessionOptions } from '../../src/model/session-options.ts'
import { TIME_LIMIT_WARNING_S } from './limits.ts'

export interface TimeLimited {
  /** Grows with every sign of the user. */
  readonly signs: number
  /** Shows a warning to the user. */
  warn(text: string): void
  stop(reason: string): void
}

/** Checks per idle limit: the end comes up to a twentieth of it late. */
const IDLE_LOOKS = 20
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** The clock's unit is milliseconds. */
export class TimeLimits {
  readonly #options: Pick<SessionOptions, 'idleTimeout' | 'maxDuration'>
  readonly #session: TimeLimited
  readonly #now: () => number
  readonly #begin: number
  #timer: NodeJS.Timeout | undefined
  #signs: number
  #lastSign: number
  readonly #warned = { idle: false, duration: false }

  constructor(
    options: Pick<SessionOptions, 'idleTimeout' | 'maxDuration'>,
    session: TimeLimited,
    now: () => number = () => performance.now(),
  ) {
    this.#options = options
    this.#session = session
    this.#now = now
    this.#begin = this.#lastSign = now()
    this.#signs = session.signs
    this.#wait()
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** Waits for the end, the warning, or the next check for signs of the user. */
  #wait(): void {
    const { idleTimeout, maxDuration } = this.#options
    const delays: number[] = []
    if (idleTimeout > 0) delays.push((idleTimeout * 1000) / IDLE_LOOKS)
    if (maxDuration > 0) {
      const end = this.#warned.duration ? maxDuration : maxDuration - warningOf(maxDuration)
      delays.push(this.#begin + end * 1000 - this.#now())
    }
    if (delays.length === 0) return
    const delay = Math.max(0, Math.min(...delays, LONGEST_TIMER_MS))
    this.#timer = setTimeout(() => this.#check(), delay)
  }

  #check(): void {
    const now = this.#now()
    if (this.#session.signs !== this.#signs) {
      this.#signs = this.#session.signs
      this.#lastSign = now
      this.#warned.idle = false
    }
    const lasted = (now - this.#begin) / 1000
    const idle = (now - this.#lastSign) / 1000
    const { idleTimeout, maxDuration } = this.#options
    if (maxDuration > 0 && lasted >= maxDuration) {
      this.#session.stop(`the session has lasted ${durationText(maxDuration)}, which is the limit`)
    } else if (idleTimeout > 0 && idle >= idleTimeout) {
      this.#session.stop(`nothing was done for ${durationText(idleTimeout)}`)
    } else {
      this.#warn('duration', maxDuration, lasted, 'that is its limit')
      this.#warn('idle', idleTimeout, idle, 'type something to go on')
      this.#wait()
    }
  }

  #warn(limit: 'duration' | 'idle', seconds: number, passed: number, what: string): void {
    const warning = warningOf(seconds)
    if (seconds === 0 || this.#warned[limit] || passed < seconds - warning) return
    this.#warned[limit] = true
    this.#session.warn(`this session ends in ${durationText(warning)}: ${what}`)
  }
}

/** Returns how many seconds before the end the user is warned. */
function warningOf(limit: number): number {
  return Math.min(TIME_LIMIT_WARNING_S, Math.ceil(limit / 4))
}

function durationText(seconds: number): string {
  const units = [
    [86_400, 'day'],
    [3600, 'hour'],
    [60, 'minute'],
  ] as const
  const [size, unit] = units.find(([size]) => seconds % size === 0) ?? [1, 'second']
  const count = seconds / size
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}
