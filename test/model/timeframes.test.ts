import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  dayOf,
  isTimeZone,
  lasting,
  lastsUntil,
  mayGoOn,
  minuteOf,
  nextEdge,
  type Period,
  stateAt,
  type TimeRule,
  WEEK_DAYS,
} from '../../src/model/timeframes.ts'

const MINUTE = 60_000
const DAY = 1440 * MINUTE

const rule = (timeZone: string, ...periods: Partial<Period>[]): TimeRule => ({
  isOvertimable: false,
  timeZone,
  periods: periods.map((one) => ({ startTime: '00:00', endTime: '24:00', weekDays: [], ...one })),
})
const overtimable = (one: TimeRule): TimeRule => ({ ...one, isOvertimable: true })
const at = (text: string) => Date.parse(text)

const formats = new Map<string, Intl.DateTimeFormat>()

/** Reads the wall clock of a zone: day since the epoch, and minute. */
function wall(zone: string, time: number): { day: number; minute: number } {
  const format =
    formats.get(zone) ??
    new Intl.DateTimeFormat('en', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
    })
  formats.set(zone, format)
  const parts = Object.fromEntries(format.formatToParts(time).map(({ type, value }) => [type, Number(value)]))
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0 } = parts
  return { day: Date.UTC(year, month - 1, day) / DAY, minute: hour * 60 + minute }
}

/** Whether a timeframe holds, as a person with a calendar and a clock would say. */
function holds({ timeZone, periods }: TimeRule, time: number): boolean {
  const { day, minute } = wall(timeZone, time)
  return periods.some(({ startDate, endDate, startTime, endTime, weekDays }) => {
    const [begin, end] = [minuteOf(startTime)!, minuteOf(endTime)!]
    const isOf = (one: number) => {
      const date = new Date(one * DAY).toISOString().slice(0, 10)
      const weekDay = WEEK_DAYS[(new Date(one * DAY).getUTCDay() + 6) % 7]!
      return (
        (startDate === undefined || startDate <= date) &&
        (endDate === undefined || date <= endDate) &&
        (weekDays.length === 0 || weekDays.includes(weekDay))
      )
    }
    if (begin < end) return isOf(day) && begin <= minute && minute < end
    return (isOf(day) && begin <= minute) || (isOf(day - 1) && minute < end)
  })
}

/** Days at which clocks change, in each zone, and some others. */
const EDGES: [zone: string, day: string][] = [
  ['Europe/Paris', '2026-03-29'],
  ['Europe/Paris', '2026-10-25'],
  ['America/St_Johns', '2026-03-08'],
  ['America/St_Johns', '2010-11-07'],
  ['Australia/Lord_Howe', '2026-04-05'],
  ['Australia/Lord_Howe', '2026-10-04'],
  ['Asia/Kathmandu', '2026-05-01'],
  ['America/Havana', '2026-03-08'],
  ['UTC', '2027-12-31'],
]

const time = fc
  .tuple(fc.integer({ min: 0, max: 23 }), fc.constantFrom(0, 1, 15, 30, 59))
  .map(([hour, minute]) => `${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`)

const periodNear = (day: string) =>
  fc
    .record({
      startTime: time,
      endTime: fc.oneof(time, fc.constant('24:00')),
      weekDays: fc.subarray([...WEEK_DAYS]),
      from: fc.option(fc.integer({ min: -2, max: 2 }), { nil: undefined }),
      lasts: fc.option(fc.integer({ min: 0, max: 3 }), { nil: undefined }),
    })
    .map(({ from, lasts, ...period }): Period => {
      const date = (days: number) => new Date(at(day) + days * DAY).toISOString().slice(0, 10)
      return {
        ...period,
        ...(from !== undefined && { startDate: date(from) }),
        ...(lasts !== undefined && { endDate: date((from ?? 0) + lasts) }),
      }
    })

describe('the state of timeframes', () => {
  it.each(EDGES)('is what a clock on the wall of %s says around %s', (zone, day) => {
    const rules = fc.array(
      fc.record({
        timeZone: fc.oneof(fc.constant(zone), fc.constantFrom('UTC', 'Asia/Kathmandu')),
        isOvertimable: fc.boolean(),
        periods: fc.array(periodNear(day), { minLength: 1, maxLength: 3 }),
      }),
      { minLength: 1, maxLength: 2 },
    )
    fc.assert(
      fc.property(rules, fc.integer({ min: -1440, max: 1440 }), (timeframes, minutes) => {
        const now = at(day) + minutes * MINUTE
        const isIn = (moment: number) => timeframes.some((one) => holds(one, moment))
        const { isWithin, until, opens, isOvertimable } = stateAt(timeframes, now)
        expect(isWithin).toBe(isIn(now))
        const edge = isWithin ? until : opens
        // Each minute for two days, unless the edge comes before.
        const end = Math.min(edge ?? Number.POSITIVE_INFINITY, now + 2 * DAY)
        for (let moment = now; moment < end; moment += MINUTE) {
          if (isIn(moment) !== isWithin) expect.fail(`${new Date(moment).toISOString()} is an edge`)
        }
        if (edge !== undefined) expect(isIn(edge)).toBe(!isWithin)
        const overtime = timeframes.filter((one) => one.isOvertimable)
        if (isWithin && until !== undefined)
          expect(isOvertimable).toBe(overtime.some((one) => holds(one, until - MINUTE)))
      }),
      { numRuns: 25 },
    )
  })

  it('is allowed always without any, and never without a zone that is known', () => {
    expect(stateAt([], 0)).toEqual({
      isWithin: true,
      until: undefined,
      opens: undefined,
      isOvertimable: true,
    })
    expect(stateAt([rule('Mars/Olympus', {})], 0)).toMatchObject({ isWithin: false, opens: undefined })
    expect(stateAt([rule('UTC', { startTime: '25:00' })], 0).isWithin).toBe(false)
  })

  it('has no end if none comes within a year', () => {
    const now = at('2026-11-23T12:00:00Z')
    expect(stateAt([rule('UTC', {})], now).until).toBeUndefined()
    const week = rule('Europe/Paris', { weekDays: [...WEEK_DAYS.slice(0, 5)] }, { weekDays: ['saturday'] })
    const sundays = rule('Europe/Paris', { weekDays: ['sunday'] })
    expect(stateAt([week], now).until).toBe(at('2026-11-28T23:00:00Z'))
    expect(stateAt([week, sundays], now)).toMatchObject({ isWithin: true, until: undefined })
    expect(stateAt([rule('UTC', { startDate: '2020-01-01', endDate: '2026-12-31' })], now).until).toBe(
      at('2027-01-01T00:00:00Z'),
    )
  })

  it('goes on over timeframes that meet, also of other zones', () => {
    const morning = rule('UTC', { startTime: '08:00', endTime: '12:00' })
    const paris = overtimable(rule('Europe/Paris', { startTime: '13:00', endTime: '19:00' }))
    const now = at('2026-11-23T09:00:00Z')
    expect(stateAt([morning, paris], now)).toMatchObject({
      until: at('2026-11-23T18:00:00Z'),
      isOvertimable: true,
    })
    expect(stateAt([morning], now)).toMatchObject({
      until: at('2026-11-23T12:00:00Z'),
      isOvertimable: false,
    })
    expect(nextEdge([morning, paris], now)).toBe(at('2026-11-23T12:00:00Z'))
    expect(stateAt([morning], at('2026-11-23T12:00:00Z')).opens).toBe(at('2026-11-24T08:00:00Z'))
    expect(nextEdge([rule('UTC', {})], now)).toBeUndefined()
  })

  it('lets what began within go on in overtime, and nothing that a clock has gone back before', () => {
    const day = rule('UTC', { startTime: '08:00', endTime: '18:00' })
    const [begin, evening] = [at('2026-11-23T17:00:00Z'), at('2026-11-23T20:00:00Z')]
    expect(mayGoOn([day], begin, evening)).toBe(false)
    expect(mayGoOn([overtimable(day)], begin, evening)).toBe(true)
    expect(mayGoOn([overtimable(day)], evening, evening)).toBe(false)
    expect(mayGoOn([overtimable(day)], begin, at('2026-11-23T07:00:00Z'))).toBe(false)
    expect(mayGoOn([day], begin, begin)).toBe(true)
  })

  it('is found soon for many sessions', () => {
    const timeframes = Array.from({ length: 20 }, (_, hour) =>
      rule('Europe/Paris', { startTime: `${String(hour).padStart(2, '0')}:30`, endTime: '21:00' }),
    )
    const begin = performance.now()
    for (let session = 0; session < 10_000; session++) stateAt(timeframes, at('2026-11-23T19:00:00Z'))
    expect(performance.now() - begin).toBeLessThan(2000)
  })

  it('is found soon of timeframes that meet all the year', () => {
    const hourly = Array.from({ length: 24 }, (_, hour) => {
      const time = (at: number) => `${String(at).padStart(2, '0')}:00`
      return rule('Europe/Paris', { startTime: time(hour), endTime: time(hour + 1) })
    })
    const now = at('2026-11-23T19:00:00Z')
    const begin = performance.now()
    let kept = 0
    for (let session = 0; session < 10_000; session++) {
      if (mayGoOn(hourly, now - session * MINUTE, now)) kept += 1
      // Several groups together are a new list each time.
      if (lastsUntil([{ timeframes: [...hourly] }], now - session, now) === Number.POSITIVE_INFINITY)
        kept += 1
    }
    expect(kept).toBe(20_000)
    expect(performance.now() - begin).toBeLessThan(2000)
  })

  it('is worked out anew for other timeframes that begin with the same one, and for a clock that went back', () => {
    const morning = rule('UTC', { startTime: '08:00', endTime: '12:00' })
    const noon = rule('UTC', { startTime: '12:00', endTime: '14:00' })
    const now = at('2026-11-23T09:00:00Z')
    const untils = [[morning], [morning, noon], [morning]].map((some) => stateAt(some, now).until)
    expect(untils).toEqual([12, 14, 12].map((hour) => at(`2026-11-23T${hour}:00:00Z`)))
    expect(stateAt([morning], at('2026-11-23T13:00:00Z')).isWithin).toBe(false)
    expect(stateAt([morning], at('2026-11-23T07:00:00Z'))).toMatchObject({
      isWithin: false,
      opens: at('2026-11-23T08:00:00Z'),
    })
    expect(stateAt([morning], at('2026-11-23T11:59:00Z')).isWithin).toBe(true)
  })
})

describe('overtime of several groups', () => {
  const hours = fc.integer({ min: 0, max: 23 }).map((hour) => `${String(hour).padStart(2, '0')}:00`)
  const group = fc.array(
    fc
      .record({ startTime: hours, endTime: hours, isOvertimable: fc.boolean() })
      .map(({ isOvertimable, ...period }): TimeRule => ({ ...rule('UTC', period), isOvertimable })),
    { maxLength: 3 },
  )
  const rows = fc
    .array(group, { minLength: 1, maxLength: 4 })
    .map((groups) => groups.map((timeframes) => ({ timeframes })))
  const midnight = at('2026-11-23T00:00:00Z')

  /** Whether one group lets it go on, as a person would say: open now, or its last end, since the begin, allowed it. */
  function goesOn(timeframes: readonly TimeRule[], begin: number, now: number): boolean {
    const isOpen = (time: number) => timeframes.length === 0 || timeframes.some((one) => holds(one, time))
    if (isOpen(now)) return true
    if (now < begin || !isOpen(begin)) return false
    let end = begin
    while (isOpen(end)) end += 60 * MINUTE
    return timeframes.some((one) => one.isOvertimable && holds(one, end - 60 * MINUTE))
  }

  it('counts after the clock was set back within the window', () => {
    const window = { ...rule('UTC', { startTime: '00:00', endTime: '02:00' }), isOvertimable: true }
    expect(lastsUntil([{ timeframes: [window] }], midnight + 60 * MINUTE, midnight)).toBe(
      Number.POSITIVE_INFINITY,
    )
    expect(lastsUntil([{ timeframes: [window] }], midnight + 180 * MINUTE, midnight)).toBe(
      midnight + 120 * MINUTE,
    )
  })

  it('is that of each alone, and a checkout ends in the hour in which the last of them does', () => {
    fc.assert(
      fc.property(
        rows,
        fc.integer({ min: 0, max: 23 }),
        fc.integer({ min: -3, max: 30 }),
        (some, hour, more) => {
          const begin = midnight + hour * 60 * MINUTE
          const now = begin + more * 60 * MINUTE
          const held = some.filter(({ timeframes }) => goesOn(timeframes, begin, now))
          expect(lasting(some, begin, now)).toEqual(held)
          let end = now
          const isHeld = () => some.some(({ timeframes }) => goesOn(timeframes, begin, end))
          while (isHeld() && end < now + 2 * DAY) end += 60 * MINUTE
          expect(lastsUntil(some, begin, now)).toBe(end < now + 2 * DAY ? end : Number.POSITIVE_INFINITY)
        },
      ),
      { numRuns: 300 },
    )
  })
})

it('reads times, dates and zones, and no others', () => {
  expect(['00:00', '23:59', '24:00', '24:01', '7:00', '12:60'].map(minuteOf)).toEqual([
    0,
    1439,
    1440,
    undefined,
    undefined,
    undefined,
  ])
  expect(['1970-01-02', '2026-02-29', '2028-02-29', '2026-1-1'].map(dayOf)).toEqual([
    1,
    undefined,
    21_243,
    undefined,
  ])
  const zones = ['UTC', 'Europe/Paris', 'America/Argentina/Ushuaia', '+02:00', 'Paris', '', 'Etc/GMT+2']
  expect(zones.map(isTimeZone)).toEqual([true, true, true, false, false, false, true])
})
