/** The periods of a timeframe: as fields of the API, as text in a cell, and checked. */
import { type Static, Type } from 'typebox'
import { dayOf, minuteOf, type Period, WEEK_DAYS, type WeekDay } from '../../model/timeframes.ts'
import { ApiError, type ErrorDetail } from '../http/errors.ts'
import { exact, oneOf } from './fields.ts'

const MAX_PERIODS = 50

const date = (description: string) =>
  Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$', description, examples: ['2027-01-31'] })
const time = (description: string, example: string) =>
  Type.String({ pattern: '^\\d{2}:\\d{2}$', description, examples: [example] })

const fields = {
  start_date: Type.Optional(date('first day; without one it has always held')),
  end_date: Type.Optional(date('last day, which is part of it; without one it holds on')),
  start_time: time('00:00 unless given', '08:00'),
  end_time: time(
    'not part of it; 24:00, the end of the day, unless given. One that is not after start_time is of the next day',
    '18:30',
  ),
  week_days: Type.Array(oneOf(WEEK_DAYS, 'day on which it begins'), {
    maxItems: WEEK_DAYS.length,
    description: 'all, unless given',
  }),
}

const list = {
  minItems: 1,
  maxItems: MAX_PERIODS,
  description: 'it holds in each of them',
  'x-ordered': true,
}
export const Periods = Type.Array(
  exact({
    ...fields,
    start_time: Type.Optional(fields.start_time),
    end_time: Type.Optional(fields.end_time),
    week_days: Type.Optional(fields.week_days),
  }),
  list,
)
export const PeriodsShown = Type.Array(exact(fields), list)

/** Returns the periods of a body. @throws ApiError `invalid_field` that names each bad field */
export function periodsOf(body: Static<typeof Periods>): Period[] {
  const details: ErrorDetail[] = []
  const periods = body.map((one, index): Period => {
    const { start_date: first, end_date: last, start_time: begin = '00:00', end_time: end = '24:00' } = one
    const fault = (field: string, message: string) =>
      details.push({ field: `periods/${index}/${field}`, message })
    for (const [field, text] of Object.entries({ start_date: first, end_date: last })) {
      if (text !== undefined && dayOf(text) === undefined) fault(field, `there is no day ${text}`)
    }
    if (first !== undefined && last !== undefined && last < first)
      fault('end_date', 'it is before start_date')
    const [from, to] = [minuteOf(begin), minuteOf(end)]
    if (from === undefined || from === 24 * 60) fault('start_time', 'expected 00:00 to 23:59')
    if (to === undefined) fault('end_time', 'expected 00:00 to 24:00')
    else if (from === to && from !== 24 * 60)
      fault('end_time', 'it is the same as start_time: 00:00 to 24:00 is the whole day')
    const days = new Set<WeekDay>(one.week_days)
    return {
      ...(first !== undefined && { startDate: first }),
      ...(last !== undefined && { endDate: last }),
      startTime: begin,
      endTime: end,
      weekDays: days.size === WEEK_DAYS.length ? [] : WEEK_DAYS.filter((day) => days.has(day)),
    }
  })
  if (details.length > 0) throw new ApiError('invalid_field', details)
  return periods
}

/** Returns the periods as the API shows them. */
export function periodsShown(periods: readonly Period[]): Static<typeof PeriodsShown> {
  return periods.map(({ startDate, endDate, startTime, endTime, weekDays }) => ({
    ...(startDate !== undefined && { start_date: startDate }),
    ...(endDate !== undefined && { end_date: endDate }),
    start_time: startTime,
    end_time: endTime,
    week_days: weekDays.length === 0 ? [...WEEK_DAYS] : weekDays,
  }))
}

/** Returns the member of a cell: `08:00-18:00 monday,friday 2027-01-01..2027-01-31`, the days only if not all. */
export function periodText(shown: Static<typeof PeriodsShown>[number]): string {
  const { start_date: first = '', end_date: last = '', start_time: begin, end_time: end, week_days } = shown
  return [
    `${begin}-${end}`,
    ...(week_days.length < WEEK_DAYS.length ? [week_days.join(',')] : []),
    ...(first + last === '' ? [] : [`${first}..${last}`]),
  ].join(' ')
}

/** Returns the period of a cell's member, or undefined if it is none. Its values are checked like the API's. */
export function periodIn(text: string): Static<typeof PeriodsShown>[number] | undefined {
  const [, begin, end, days, first, last] =
    /^(\d\d:\d\d)-(\d\d:\d\d)(?: ([a-z]+(?:,[a-z]+)*))?(?: ([\d-]*)\.\.([\d-]*))?$/.exec(text.trim()) ?? []
  if (begin === undefined || end === undefined) return undefined
  const weekDays = (days?.split(',') ?? [...WEEK_DAYS]) as WeekDay[]
  return {
    ...(first && { start_date: first }),
    ...(last && { end_date: last }),
    start_time: begin,
    end_time: end,
    week_days: weekDays,
  }
}
