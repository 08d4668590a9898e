/** Names of several objects in one query each: the API shows them for objects that others refer to. */
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Id } from '../model/objects.ts'
import { isAmong } from './engine/json.ts'
import type { StoreContext } from './migrations/schema.ts'
import type { NameQueries } from './store.ts'

export function nameQueries({ db }: StoreContext): NameQueries {
  return {
    async users(ids) {
      const rows = await db
        .selectFrom('users')
        .select(['id', 'user_name as name'])
        .where(among(ids))
        .execute()
      return byId(rows, ({ name }) => name)
    },

    async lastSignIns(ids) {
      const rows = await db
        .selectFrom('last_sign_ins')
        .select(['user_id as id', 'time'])
        .where(among(ids, 'user_id'))
        .execute()
      return byId(rows, ({ time }) => time)
    },

    async userGroups(ids) {
      const groups = db.selectFrom('user_groups').select(['id', 'group_name as name'])
      return byId(await groups.where(among(ids)).execute(), ({ name }) => name)
    },

    async timeframes(ids) {
      const timeframes = db.selectFrom('timeframes').select(['id', 'timeframe_name as name'])
      return byId(await timeframes.where(among(ids)).execute(), ({ name }) => name)
    },

    async targetGroups(ids) {
      const groups = db.selectFrom('target_groups').select(['id', 'group_name as name'])
      return byId(await groups.where(among(ids)).execute(), ({ name }) => name)
    },

    async checkoutPolicies(ids) {
      const policies = db.selectFrom('checkout_policies').select(['id', 'policy_name as name'])
      return byId(await policies.where(among(ids)).execute(), ({ name }) => name)
    },

    async connectionPolicies(ids) {
      const policies = db.selectFrom('connection_policies').select(['id', 'policy_name as name'])
      return byId(await policies.where(among(ids)).execute(), ({ name }) => name)
    },

    async devices(ids) {
      const devices = db.selectFrom('devices').select(['id', 'device_name as name'])
      return byId(await devices.where(among(ids)).execute(), ({ name }) => name)
    },

    async services(ids) {
      const rows = await db
        .selectFrom('services as s')
        .innerJoin('devices as v', 'v.id', 's.device_id')
        .select(['s.id as id', 's.service_name as serviceName', 'v.device_name as deviceName'])
        .where(among(ids, 's.id'))
        .execute()
      return byId(rows, ({ serviceName, deviceName }) => ({ serviceName, deviceName }))
    },

    async domains(ids) {
      const rows = await db
        .selectFrom('domains as d')
        .leftJoin('devices as v', 'v.id', 'd.device_id')
        .select(['d.id as id', 'd.domain_name as domainName', 'v.device_name as deviceName'])
        .where(among(ids, 'd.id'))
        .execute()
      return byId(rows, ({ domainName, deviceName }) => ({ domainName, deviceName }))
    },

    async accounts(ids) {
      const rows = await db
        .selectFrom('accounts as a')
        .innerJoin('domains as d', 'd.id', 'a.domain_id')
        .leftJoin('devices as v', 'v.id', 'd.device_id')
        .select(['a.id as id', 'a.account_name as accountName'])
        .select(['d.domain_name as domainName', 'v.device_name as deviceName'])
        .where(among(ids, 'a.id'))
        .execute()
      return byId(rows, ({ accountName, domainName, deviceName }) => ({
        accountName,
        domainName,
        deviceName,
      }))
    },
  }
}

function among(ids: Iterable<Id>, column = 'id'): RawBuilder<SqlBool> {
  return isAmong(sql.ref(column), ids)
}

function byId<R extends { id: Id }, T>(rows: readonly R[], value: (row: R) => T): Map<Id, T> {
  return new Map(rows.map((row) => [row.id, value(row)]))
}
