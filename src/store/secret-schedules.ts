/** Schedules of the domains whose secrets are changed, and the figures of these. */
import { sql } from 'kysely'
import type { SecretSchedule } from '../model/password-change.ts'
import { inTransaction, type Tx } from './engine/commits.ts'
import type { Db } from './migrations/schema.ts'
import type { SecretJobRepository } from './store.ts'

const KINDS = ['change', 'check'] as const

export async function putSchedules(tx: Tx, schedules: readonly SecretSchedule[]): Promise<void> {
  for (const { domainId, kind, period, timeZone, since, next } of schedules) {
    const columns = { period, time_zone: timeZone, since, next_run: next }
    await tx
      .insertInto('secret_schedules')
      .values({ domain_id: domainId, kind, ...columns })
      .onConflict((one) => one.columns(['domain_id', 'kind']).doUpdateSet(columns))
      .execute()
  }
}

export function scheduleQueries(
  db: Db,
): Pick<SecretJobRepository, 'figures' | 'schedules' | 'setSchedules' | 'forgetSchedules'> {
  /** Domains with a schedule, by their policies; those without one are not read. */
  const scheduled = (kind: (typeof KINDS)[number]) =>
    db
      .selectFrom('password_change_policies as p')
      // The order of the tables is SQLite's too: policies are few, and most have no schedule.
      .crossJoin('domains as d')
      .whereRef('d.change_policy_id', '=', 'p.id')
      // A value in the text: SQLite uses no partial index for a bound one.
      .where('d.change_enabled', '=', sql.lit(1))
      .where(sql.ref(`p.${kind}_period`), 'is not', null)

  return {
    async schedules(now, limit) {
      const found = []
      for (const kind of KINDS) {
        const period = sql<string>`${sql.ref(`p.${kind}_period`)}`
        const isKept = sql<number>`case when s.period = ${period} and s.time_zone = p.time_zone
          and s.since <= ${now} then 1 else 0 end`
        const rows = await scheduled(kind)
          .leftJoin('secret_schedules as s', (on) =>
            on.onRef('s.domain_id', '=', 'd.id').on('s.kind', '=', kind),
          )
          .select(['d.id', 'd.change_plugin', 'p.time_zone', period.as('period'), isKept.as('kept')])
          .where((e) => e.or([e(isKept, '=', 0), e('s.next_run', '<=', now)]))
          .limit(limit - found.length)
          .execute()
        found.push(
          ...rows.map((row) => ({
            ...{ domainId: row.id, kind, period: row.period, timeZone: row.time_zone },
            ...{ plugin: row.change_plugin, isDue: Number(row.kept) === 1 },
          })),
        )
        if (found.length >= limit) break
      }
      return found
    },

    setSchedules: (schedules) => inTransaction(db, (tx) => putSchedules(tx, schedules)),

    async forgetSchedules() {
      for (const kind of KINDS) {
        const stale = db
          .selectFrom('secret_schedules')
          .select('domain_id')
          .where('kind', '=', kind)
          .where('domain_id', 'not in', scheduled(kind).select('d.id'))
        const rows = await stale.execute()
        if (rows.length === 0) continue
        await inTransaction(db, (tx) =>
          tx
            .deleteFrom('secret_schedules')
            .where('kind', '=', kind)
            .where('domain_id', 'in', stale)
            .execute(),
        )
      }
    },

    async figures(now) {
      const [row] = await db
        .selectFrom('accounts as a')
        .innerJoin('domains as d', 'd.id', 'a.domain_id')
        .innerJoin('password_change_policies as p', 'p.id', 'd.change_policy_id')
        .select([
          sql<number>`count(*)`.as('managed'),
          sql<number>`coalesce(sum(case when p.max_age is not null
            and coalesce(a.secret_changed, 0) + p.max_age * 1000 < ${now} then 1 else 0 end), 0)`.as(
            'overdue',
          ),
          sql<number>`coalesce(sum(case when a.secret_state = 'mismatch' then 1 else 0 end), 0)`.as(
            'mismatch',
          ),
          sql<number>`coalesce(sum(case when a.secret_state = 'unknown' then 1 else 0 end), 0)`.as('unknown'),
          sql<number>`coalesce(sum(case when a.secret_state = 'pending' then 1 else 0 end), 0)`.as('pending'),
        ])
        .where('d.change_enabled', '=', 1)
        .where(sql<boolean>`exists (select 1 from account_credentials c where c.account_id = a.id)`)
        .execute()
      const { managed = 0, overdue = 0, mismatch = 0, unknown = 0, pending = 0 } = row ?? {}
      const number = (value: unknown) => Number(value)
      return {
        managed: number(managed),
        overdue: number(overdue),
        mismatch: number(mismatch),
        unknown: number(unknown),
        pending: number(pending),
      }
    },
  }
}
