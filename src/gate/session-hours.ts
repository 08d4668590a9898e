/**
 * Timeframes of running sessions: when each has to be judged again, and the warnings before it ends. Keeps what
 * sessions were judged by, so that they end in time while the database is away.
 */
import type { GateNotice } from '../contract/gate.ts'
import { nextEdge, together } from '../model/timeframes.ts'
import type { TargetRow } from '../store/store.ts'
import { Due } from './due.ts'
import type { RunningSession } from './running.ts'
import { flawOfTarget } from './target-look.ts'

const MINUTE = 60_000
/** Milliseconds before the end at which the user is warned, the longest first. */
const WARNINGS = [5 * MINUTE, MINUTE]
const [FIRST = 0] = WARNINGS
/** Milliseconds after which a session is judged again whose timeframes have no edge for long. */
const AT_LATEST = 24 * 60 * MINUTE
/** Edges of timeframes that are looked at within the time of a warning. */
const MAX_EDGES = 50

interface Judged {
  rows: readonly TargetRow[]
  /** End that was found, and the last warning that was given of it. */
  end?: number
  warned?: number
}

export class SessionHours {
  readonly #now: () => number
  readonly #notify: (notice: GateNotice) => void
  readonly #judged = new WeakMap<RunningSession, Judged>()
  readonly #due = new Due<RunningSession>()

  constructor({ now, notify }: { now: () => number; notify: (notice: GateNotice) => void }) {
    this.#now = now
    this.#notify = notify
  }

  /** Notes what a session was judged by that may continue: the rows that grant its target at any time. */
  judged(session: RunningSession, rows: readonly TargetRow[]): void {
    if (rows.every(({ timeframes }) => timeframes.length === 0)) {
      if (this.#judged.delete(session)) this.#due.replace(session, Number.POSITIVE_INFINITY)
      return
    }
    const now = this.#now()
    const before = this.#judged.get(session)
    const end = endSoon(session, rows, now)
    const judged: Judged = { rows }
    if (end !== undefined) {
      const isKnown = before?.end === end && before.warned !== undefined
      judged.end = end
      judged.warned = this.#warn(session, end - now, isKnown ? before.warned : undefined)
    }
    this.#judged.set(session, judged)
    this.#due.set(session, this.#next(rows, now, end))
  }

  /** Returns why the session has to end now, as far as it is known. */
  flawOf(session: RunningSession): string | undefined {
    const judged = this.#judged.get(session)
    return judged && flawOfTarget(session, judged.rows, this.#now())
  }

  /** Notes again what is known of a session that may continue. */
  again(session: RunningSession): void {
    const judged = this.#judged.get(session)
    if (judged) this.judged(session, judged.rows)
  }

  /** Returns the sessions that have to be judged. */
  take(running: () => Iterable<RunningSession>): RunningSession[] {
    return this.#due.take(this.#now(), running)
  }

  #next(rows: readonly TargetRow[], now: number, end: number | undefined): number {
    if (end !== undefined) {
      const ahead = WARNINGS.map((before) => end - before).filter((time) => now < time)
      return Math.min(end, ...ahead)
    }
    const edge = edgeAfter(rows, now) ?? Number.POSITIVE_INFINITY
    return Math.min(now + AT_LATEST, now < edge - FIRST ? edge - FIRST : edge)
  }

  /** Warns the user unless this was done before. Returns the warning that was given last. */
  #warn({ id }: RunningSession, left: number, warned: number | undefined): number {
    const due = Math.min(...WARNINGS.filter((before) => left <= before))
    if (warned !== undefined && warned <= due) return warned
    const minutes = Math.max(1, Math.ceil(left / MINUTE))
    const text = `this session ends in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}: its timeframe is over then`
    this.#notify({ type: 'tell', session: id, text })
    return due
  }
}

/** Returns when the session ends, if that is within the time of the first warning. */
function endSoon(session: RunningSession, rows: readonly TargetRow[], now: number): number | undefined {
  let time: number | undefined = now
  for (let edges = 0; edges < MAX_EDGES; edges++) {
    time = edgeAfter(rows, time)
    if (time === undefined || now + FIRST < time) return undefined
    if (flawOfTarget(session, rows, time) !== undefined) return time
  }
  return undefined
}

/** Of each group alone: a right may end, while others go on. */
function edgeAfter(rows: readonly TargetRow[], time: number): number | undefined {
  return nextEdge(together(rows.map(({ timeframes }) => timeframes).filter(({ length }) => length > 0)), time)
}
