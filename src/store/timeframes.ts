import { sql } from 'kysely'
import { nameKey } from '../model/names.ts'
import type { Id } from '../model/objects.ts'
import type { Period, Timeframe, TimeRule } from '../model/timeframes.ts'
import { batchQuery } from './batches.ts'
import { FactoryError } from './engine/errors.ts'
import type { Db, StoreContext, TimeframeRow } from './migrations/schema.ts'
import { namedRepository } from './named.ts'
import { flag, json, key, refuseInUse, setColumns } from './query.ts'
import { column } from './searchable.ts'
import type { Repository } from './store.ts'

const TYPE = 'timeframe'
export const TIMEFRAME_FIELDS = {
  timeframe_name: column('name', 'name_key'),
  description: column('text', 'description'),
  is_overtimable: column('flag', 'is_overtimable'),
  time_zone: column('text', 'time_zone'),
  is_factory: column('flag', 'is_factory'),
  id: column('id', 'id'),
} as const

/** The one from the factory can be neither changed nor removed: groups without any rely on it. */
export function timeframeRepository(context: StoreContext): Repository<Timeframe> {
  return namedRepository(context, {
    type: TYPE,
    table: 'timeframes',
    fields: TIMEFRAME_FIELDS,
    standard: 'timeframe_name',
    select,
    object: timeframe,
    nameOf: ({ timeframeName }) => timeframeName,

    insert: async (tx, id, object: Omit<Timeframe, 'id'>) => {
      await tx
        .insertInto('timeframes')
        .values({
          id,
          timeframe_name: object.timeframeName,
          name_key: nameKey(object.timeframeName),
          description: object.description,
          is_overtimable: Number(object.isOvertimable),
          time_zone: object.timeZone,
          periods: JSON.stringify(object.periods),
          is_factory: 0,
        })
        .execute()
    },

    change: async (tx, id, change, old) => {
      if (old.isFactory) throw new FactoryError(TYPE, old.timeframeName, 'changed')
      await setColumns(tx, 'timeframes', id, {
        timeframe_name: change.timeframeName,
        name_key: key(change.timeframeName),
        description: change.description,
        is_overtimable: flag(change.isOvertimable),
        time_zone: change.timeZone,
        periods: json(change.periods),
      })
    },

    requireUnused: async (tx, { id, timeframeName, isFactory }) => {
      if (isFactory) throw new FactoryError(TYPE, timeframeName, 'removed')
      await refuseInUse(TYPE, timeframeName, [
        {
          type: 'user group',
          query: tx
            .selectFrom('user_group_timeframes as t')
            .innerJoin('user_groups as g', 'g.id', 't.group_id')
            .select('g.group_name as name')
            .where('t.timeframe_id', '=', id)
            .orderBy('g.name_key'),
        },
      ])
    },
  })
}

function select(db: Db) {
  return db.selectFrom('timeframes').selectAll()
}

function timeframe(row: TimeframeRow): Timeframe {
  return {
    id: row.id,
    timeframeName: row.timeframe_name,
    description: row.description,
    ...ruleOf(row),
    isFactory: row.is_factory !== 0,
  }
}

/** Limit of kept rules. One is worked out once for as long as its row stays the same. */
const MAX_RULES = 1000
const rules = new Map<string, TimeRule>()

function ruleOf(row: Pick<TimeframeRow, 'is_overtimable' | 'time_zone' | 'periods'>): TimeRule {
  const text = `${row.is_overtimable} ${row.time_zone} ${row.periods}`
  const known = rules.get(text)
  if (known) return known
  if (rules.size >= MAX_RULES) rules.clear()
  const made: TimeRule = {
    isOvertimable: row.is_overtimable !== 0,
    timeZone: row.time_zone,
    periods: JSON.parse(row.periods) as Period[],
  }
  rules.set(text, made)
  return made
}

/** Whether the user group of the row `a`, an authorization, has timeframes: most have none. */
export const isTimed = sql<number>`exists (select 1 from user_group_timeframes as ut where ut.group_id = a.user_group_id)`

const timeframesOf = batchQuery(1, (db, asked) =>
  db
    .selectFrom(asked)
    .innerJoin('user_group_timeframes as ut', 'ut.group_id', 'asked.column1')
    .innerJoin('timeframes as tf', 'tf.id', 'ut.timeframe_id')
    .select(['ut.group_id as groupId', 'tf.is_overtimable', 'tf.time_zone', 'tf.periods']),
)

const NONE: readonly TimeRule[] = []

/** Returns a function for the timeframes of a row's user group, after it has read those of all rows. */
export async function timeframesOfGroups(
  db: Db,
  rows: readonly { userGroupId: Id; isTimed: number }[],
): Promise<(row: { userGroupId: Id }) => readonly TimeRule[]> {
  const ids = new Set(rows.filter((row) => row.isTimed !== 0).map(({ userGroupId }) => userGroupId))
  if (ids.size === 0) return () => NONE
  const byGroup = new Map<Id, TimeRule[]>()
  const found = await timeframesOf(
    db,
    [...ids].map((id) => [id]),
  )
  for (const row of found) {
    const known = byGroup.get(row.groupId)
    if (known) known.push(ruleOf(row))
    else byGroup.set(row.groupId, [ruleOf(row)])
  }
  return ({ userGroupId }) => byGroup.get(userGroupId) ?? NONE
}
