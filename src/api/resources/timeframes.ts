import { type Static, Type } from 'typebox'
import { isTimeZone, type Timeframe } from '../../model/timeframes.ts'
import type { Context, ResourceContext } from '../access/context.ts'
import { registerCollection } from '../collection/collection.ts'
import { resource } from '../collection/resource.ts'
import type { Api } from '../http/deps.ts'
import { check, checkName, exact, name, partial, shown, text } from '../schema/fields.ts'
import { Periods, PeriodsShown, periodsOf, periodsShown } from '../schema/periods.ts'

const timeframeName = name('unique', 'office-hours')
const isOvertimable = Type.Boolean({
  description: 'whether what began in it may last longer; false unless given',
})
const timeZone = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'IANA name of the time zone whose clock the periods are read from; UTC unless given',
  examples: ['Europe/Paris'],
})
const Create = exact({
  timeframe_name: timeframeName,
  description: Type.Optional(text('what the timeframe is for')),
  is_overtimable: Type.Optional(isOvertimable),
  time_zone: Type.Optional(timeZone),
  periods: Periods,
})
const Update = partial(Create)
const View = exact({
  ...shown,
  timeframe_name: timeframeName,
  description: Type.String(),
  is_overtimable: isOvertimable,
  time_zone: timeZone,
  periods: PeriodsShown,
  is_factory: Type.Boolean({ description: 'there from the first start: can be neither changed nor removed' }),
})

export function timeframeResource(context: ResourceContext) {
  const { store } = context.deps

  const changeOf = async (
    body: Static<typeof Update>,
    own?: Timeframe,
  ): Promise<Partial<Omit<Timeframe, 'id'>>> => {
    await checkName('timeframe_name', body.timeframe_name, own, store.timeframes, 'timeframeName')
    if (body.time_zone !== undefined && !isTimeZone(body.time_zone))
      check('time_zone', `there is no time zone "${body.time_zone}": expected a name such as Europe/Paris`)
    return {
      ...(body.timeframe_name !== undefined && { timeframeName: body.timeframe_name }),
      ...(body.description !== undefined && { description: body.description }),
      ...(body.is_overtimable !== undefined && { isOvertimable: body.is_overtimable }),
      ...(body.time_zone !== undefined && { timeZone: body.time_zone }),
      ...(body.periods !== undefined && { periods: periodsOf(body.periods) }),
    }
  }

  return resource({
    path: '/timeframes',
    type: 'timeframe',
    title: 'Timeframes',
    description:
      'When the authorizations of user groups count. Sessions end when the last timeframe of theirs ends, unless it allows overtime; checkouts end no later.',
    create: {
      schema: Create,
      async plan(body) {
        const change = await changeOf(body)
        return () =>
          store.timeframes.create({
            timeframeName: body.timeframe_name,
            description: '',
            isOvertimable: false,
            timeZone: 'UTC',
            periods: [],
            ...change,
            isFactory: false,
          })
      },
    },
    update: {
      schema: Update,
      async plan(old, body) {
        const change = await changeOf(body, old)
        return () => store.timeframes.update(old.id, change, old)
      },
    },
    removeFrom: (old) => store.timeframes.remove(old.id, old),
    view: View,
    show: async (timeframe) => ({
      timeframe_name: timeframe.timeframeName,
      description: timeframe.description,
      is_overtimable: timeframe.isOvertimable,
      time_zone: timeframe.timeZone,
      periods: periodsShown(timeframe.periods),
      is_factory: timeframe.isFactory,
    }),
    label: (timeframe) => String(timeframe['timeframe_name']),
    secrets: [],
    list: (_request, page) => store.timeframes.list(page),
    find: (_request, ref) => store.timeframes.find(ref),
  })
}

export function registerTimeframes(app: Api, context: Context): void {
  registerCollection(app, context, timeframeResource(context))
}
