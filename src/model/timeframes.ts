/**
 * When timeframes hold. A period is read off the clock on the wall of its time zone: a local time that is skipped
 * when the clocks go forward never comes, and one that is shown twice when they go back counts both times. Pure.
 */
import { Temporal } from 'temporal-polyfill'
import type { Id } from './objects.ts'

export const WEEK_DAYS = [
  'monday',
  'tuesday',
  'wednesday',
  'thursday',
  'friday',
  'saturday',
  'sunday',
] as const
export type WeekDay = (typeof WEEK_DAYS)[number]

/** A stretch of each of its days. It belongs to the day on which it begins, even if it lasts over midnight. */
export interface Period {
  /** `YYYY-MM-DD`, the first and the last day; without one it has no such limit. */
  startDate?: string
  endDate?: string
  /** `HH:MM`. An end that is not after the start is one of the next day. */
  startTime: string
  /** `24:00` is the end of the day. */
  endTime: string
  /** Empty for each day. */
  weekDays: WeekDay[]
}

export interface Timeframe {
  id: Id
  timeframeName: string
  description: string
  /** Whether what began in it may last longer than it. */
  isOvertimable: boolean
  /** IANA name, as `Europe/Paris`. */
  timeZone: string
  /** It holds in each of them. */
  periods: Period[]
  isFactory: boolean
}

/** The timeframe of user groups that name none. */
export const ALL_THE_TIME: Id = '00000000000000000000000401'

/** State of several timeframes together at one moment. Times in milliseconds since the epoch. */
export interface Hours {
  isWithin: boolean
  /**
   * End of the window that holds, over all timeframes without a gap. Undefined outside, or for none that is soon: within a
   * year for one timeframe, within 40 days for several that meet.
   */
  until: number | undefined
  /** When the next window begins. Undefined if within one, or if none begins within a year. */
  opens: number | undefined
  /** Whether what began in the window may go on when it ends. */
  isOvertimable: boolean
}

export type TimeRule = Pick<Timeframe, 'isOvertimable' | 'timeZone' | 'periods'>

const DAY = 86_400_000
const MINUTE = 60_000
/** How far ends and begins are looked for: beyond it they are as good as never. */
const HORIZON = 366 * DAY
/** The same for several that meet, of which each window has to be found: longer than any checkout lasts. */
const MEETING_HORIZON = 40 * DAY
const NEVER = Number.POSITIVE_INFINITY
/** Timeframes that a user group may have. */
export const MAX_TIMEFRAMES = 20

const ALWAYS: Hours = { isWithin: true, until: undefined, opens: undefined, isOvertimable: true }

/** Latest result for timeframes, by the first of them: the same from `from` until before `to`. */
interface Known {
  timeframes: readonly TimeRule[]
  from: number
  to: number
  hours: Hours
}
const known = new WeakMap<TimeRule, Known>()

/** Returns what the timeframes of a group say of `now`. Without any, all times are allowed. */
export function stateAt(timeframes: readonly TimeRule[], now: number): Hours {
  const [first] = timeframes
  if (!first) return ALWAYS
  const last = known.get(first)
  if (last && last.from <= now && now < last.to && isSame(last.timeframes, timeframes)) return last.hours
  const hours = hoursAt(timeframes, now)
  // Looks again a day later at timeframes without an edge soon.
  const to = hours.until ?? hours.opens ?? now + DAY
  known.set(first, { timeframes, from: now, to, hours })
  return hours
}

const isSame = (one: readonly TimeRule[], other: readonly TimeRule[]) =>
  one === other || (one.length === other.length && one.every((timeframe, at) => timeframe === other[at]))

/** Whether one of the timeframes holds: found without looking for the end. */
export function doHold(timeframes: readonly TimeRule[], now: number): boolean {
  return timeframes.length === 0 || timeframes.some((one) => planOf(one).endOf(now) !== undefined)
}

function hoursAt(timeframes: readonly TimeRule[], now: number): Hours {
  const spans = timeframes.map((timeframe) => ({ timeframe, plan: planOf(timeframe) }))
  const endFrom = (time: number) => Math.max(...spans.map(({ plan }) => plan.endOf(time) ?? time))
  let end = endFrom(now)
  if (end === now) {
    const opens = Math.min(...spans.map(({ plan }) => plan.beginAfter(now)))
    return { isWithin: false, until: undefined, opens: finite(opens), isOvertimable: false }
  }
  let isEndless = now + HORIZON <= end
  while (!isEndless) {
    const next = endFrom(end)
    if (next === end) break
    end = next
    isEndless = now + MEETING_HORIZON <= end
  }
  const last = isEndless ? now : end - 1
  return {
    isWithin: true,
    until: isEndless ? undefined : end,
    opens: undefined,
    isOvertimable: spans.some(
      ({ timeframe, plan }) => timeframe.isOvertimable && plan.endOf(last) !== undefined,
    ),
  }
}

/** Returns the timeframes of several groups together: none, thus all the time, if one of them has none. */
export function together(timeframes: readonly (readonly TimeRule[])[]): TimeRule[] {
  return timeframes.every((some) => some.length > 0) ? [...new Set(timeframes.flat())] : []
}

/** Returns when one of the timeframes next begins or ends, or undefined if none does within a year. */
export function nextEdge(timeframes: readonly TimeRule[], now: number): number | undefined {
  const edges = timeframes.map((timeframe) => {
    const plan = planOf(timeframe)
    return plan.endOf(now) ?? plan.beginAfter(now)
  })
  return finite(Math.min(NEVER, ...edges))
}

/** Whether what began at `begin` may go on at `now` by the timeframes of one group: within, or in overtime. */
export function mayGoOn(timeframes: readonly TimeRule[], begin: number, now: number): boolean {
  return doHold(timeframes, now) || isInOvertime(timeframes, begin, now)
}

/** The window in which it began has to have held, and ended: not one that the clock has gone back before. */
function isInOvertime(timeframes: readonly TimeRule[], begin: number, now: number): boolean {
  if (now < begin || !timeframes.some(({ isOvertimable }) => isOvertimable)) return false
  const hours = stateAt(timeframes, begin)
  return hours.isWithin && hours.isOvertimable
}

/**
 * Returns those of the rows that let go on at `now` what began at `begin`. The group of each is judged alone, so that one
 * group more never ends what others allow.
 */
export function lasting<R extends { timeframes: readonly TimeRule[] }>(
  rows: readonly R[],
  begin: number,
  now: number,
): R[] {
  return rows.filter(({ timeframes }) => mayGoOn(timeframes, begin, now))
}

/** Returns when the last of them lets nothing go on any more, or `now` if that has come; infinity for never. */
export function lastsUntil(
  rows: readonly { timeframes: readonly TimeRule[] }[],
  begin: number,
  now: number,
): number {
  const held = lasting(rows, begin, now)
  if (held.length === 0) return now
  const isEndless = ({ timeframes }: (typeof rows)[number]) =>
    timeframes.length === 0 || isInOvertime(timeframes, begin, now)
  if (held.some(isEndless)) return NEVER
  const until = stateAt(together(rows.map(({ timeframes }) => timeframes)), now).until ?? NEVER
  // The clock was set back within the window: overtime is judged from the begin on.
  return now < begin && begin < until ? lastsUntil(rows, begin, begin) : until
}

/** Whether it is the name of a time zone: no offset, which knows no daylight saving. */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+){0,2}$/.test(name)) return false
  try {
    Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name)
    return true
  } catch {
    return false
  }
}

/** Returns the minute of the day, or undefined if it is no time from `00:00` to `24:00`. */
export function minuteOf(time: string): number | undefined {
  const [, hour, minute] = /^([01]\d|2[0-4]):([0-5]\d)$/.exec(time) ?? []
  const minutes = Number(hour) * 60 + Number(minute)
  return minutes <= 24 * 60 ? minutes : undefined
}

/** Returns the number of the day since 1970-01-01, or undefined if there is no such date. */
export function dayOf(date: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\d$/.test(date)) return undefined
  const time = Date.parse(`${date}T00:00:00Z`)
  return Number.isNaN(time) || new Date(time).toISOString().slice(0, 10) !== date ? undefined : time / DAY
}

function finite(time: number): number | undefined {
  return time === NEVER ? undefined : time
}

/** A period in numbers: days since the epoch, and milliseconds of the day. */
interface Stretch {
  first: number
  last: number
  begin: number
  /** More than a day if it lasts over midnight. */
  end: number
  /** By weekday, from Monday on. */
  days: readonly boolean[]
  isWhole: boolean
}

/** A stretch of time without a change of the clocks. */
interface Segment {
  from: number
  to: number
  /** Local time minus UTC. */
  offset: number
}

const plans = new WeakMap<TimeRule, Plan>()

function planOf(timeframe: TimeRule): Plan {
  const known = plans.get(timeframe)
  if (known) return known
  const made = new Plan(timeframe)
  plans.set(timeframe, made)
  return made
}

/** One timeframe, worked out. Remembers the last window and the last gap: reviews ask for the same moment often. */
class Plan {
  readonly #zone: string
  readonly #stretches: readonly Stretch[]
  #window = { from: 0, to: 0 }
  #gap = { from: 0, to: 0 }

  constructor({ timeZone, periods }: TimeRule) {
    this.#zone = timeZone
    // A rule that cannot be evaluated denies.
    this.#stretches = isTimeZone(timeZone) ? periods.flatMap(stretchOf) : []
  }

  /** Returns the end of the window that contains `time`; undefined if none does. */
  endOf(time: number): number | undefined {
    if (this.#window.from <= time && time < this.#window.to) return this.#window.to
    if (this.#gap.from <= time && time < this.#gap.to) return undefined
    const to = this.#endOf(time)
    if (to !== undefined) this.#window = { from: time, to }
    return to
  }

  /** Returns the begin of the first window after `time`, which is in none. */
  beginAfter(time: number): number {
    if (this.#gap.from <= time && time < this.#gap.to) return this.#gap.to
    const to = this.#beginAfter(time)
    this.#gap = { from: time, to }
    return to
  }

  #endOf(time: number): number | undefined {
    if (this.#stretches.length === 0) return undefined
    for (let at = time; ; ) {
      const { to, offset } = segmentAt(this.#zone, at)
      const limit = Math.min(to, time + HORIZON)
      const end = this.#localEnd(at + offset, limit + offset) - offset
      if (end === at) return at === time ? undefined : at
      if (end < limit) return end
      if (limit < to || to === NEVER) return NEVER
      at = to
    }
  }

  #beginAfter(time: number): number {
    if (this.#stretches.length === 0) return NEVER
    for (let at = time; at < time + HORIZON; ) {
      const { to, offset } = segmentAt(this.#zone, at)
      const local = at + offset
      if (at > time && local < this.#localEnd(local, local)) return at
      const begin = Math.min(...this.#stretches.map((stretch) => beginOf(stretch, local))) - offset
      if (begin < to) return begin
      at = to
    }
    return NEVER
  }

  /** Returns the end of the window from this local time on, `limit` or later if it lasts longer. */
  #localEnd(local: number, limit: number): number {
    for (let end = local; ; ) {
      const next = Math.max(...this.#stretches.map((stretch) => endOf(stretch, end)))
      if (next <= end) return end
      end = next
      if (limit <= end) return end
    }
  }
}

function stretchOf({ startDate, endDate, startTime, endTime, weekDays }: Period): Stretch[] {
  const first = startDate === undefined ? -NEVER : dayOf(startDate)
  const last = endDate === undefined ? NEVER : dayOf(endDate)
  const [begin, end] = [minuteOf(startTime), minuteOf(endTime)]
  if (first === undefined || last === undefined || begin === undefined || end === undefined) return []
  const days = WEEK_DAYS.map((day) => weekDays.length === 0 || weekDays.includes(day))
  const lasts = end <= begin ? end * MINUTE + DAY : end * MINUTE
  const isWhole = begin === 0 && lasts === DAY && days.every(Boolean)
  return [{ first, last, begin: begin * MINUTE, end: lasts, days, isWhole }]
}

function hasDay({ first, last, days }: Stretch, day: number): boolean {
  // The first day of the epoch was a Thursday.
  return first <= day && day <= last && days[(((day + 3) % 7) + 7) % 7] === true
}

/** Returns when the stretch ends that contains this local time, or the same time if none does. */
function endOf(stretch: Stretch, local: number): number {
  const { first, last, begin, end, isWhole } = stretch
  const day = Math.floor(local / DAY)
  if (isWhole) return first <= day && day <= last ? (last + 1) * DAY : local
  let found = local
  for (const from of [day - 1, day]) {
    const isIn = from * DAY + begin <= local && local < from * DAY + end
    if (isIn && hasDay(stretch, from)) found = Math.max(found, from * DAY + end)
  }
  return found
}

/** Returns the first begin of the stretch after this local time. */
function beginOf(stretch: Stretch, local: number): number {
  const { first, last, begin } = stretch
  const today = Math.floor(local / DAY)
  const from = Math.max(first, today * DAY + begin <= local ? today + 1 : today)
  for (let day = from; day <= Math.min(last, from + 6); day++) {
    if (hasDay(stretch, day)) return day * DAY + begin
  }
  return NEVER
}

/** Segments that are remembered per zone: this one, and the next ones that are asked for. */
const MAX_SEGMENTS = 8
const segments = new Map<string, Segment[]>()

function segmentAt(zone: string, time: number): Segment {
  const known = segments.get(zone) ?? []
  const found = known.find(({ from, to }) => from <= time && time < to)
  if (found) return found
  const there = Temporal.Instant.fromEpochMilliseconds(Math.floor(time)).toZonedDateTimeISO(zone)
  const before = there.add({ milliseconds: 1 }).getTimeZoneTransition('previous')
  const after = there.getTimeZoneTransition('next')
  const segment = {
    from: before?.epochMilliseconds ?? -NEVER,
    to: after?.epochMilliseconds ?? NEVER,
    offset: there.offsetNanoseconds / 1e6,
  }
  segments.set(zone, [segment, ...known].slice(0, MAX_SEGMENTS))
  return segment
}
