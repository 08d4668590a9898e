import type { StoreContext } from './migrations/schema.ts'
import type { SealedRepository } from './store.ts'

export function sealedRepository({ db }: StoreContext): SealedRepository {
  return {
    async all() {
      const credentials = await db.selectFrom('account_credentials').selectAll().execute()
      const authorities = await db.selectFrom('domain_authorities').selectAll().execute()
      const users = await db
        .selectFrom('users')
        .select(['id', 'sealed_password_hash as sealed'])
        .where('sealed_password_hash', 'is not', null)
        .execute()
      const external = await db.selectFrom('external_auth_secrets').selectAll().execute()
      const notifications = await db.selectFrom('notification_secrets').selectAll().execute()
      const factors = await db.selectFrom('second_factors').select(['user_id', 'sealed']).execute()
      const offline = await db
        .selectFrom('offline_proofs')
        .select(['user_id', 'external_auth_id', 'sealed'])
        .execute()
      const pending = await db.selectFrom('pending_secrets').selectAll().execute()
      const tickets = await db.selectFrom('tickets').select(['id', 'sealed']).execute()
      const invitations = await db.selectFrom('invitations').select(['id', 'sealed']).execute()
      const approvals = await db
        .selectFrom('approvals')
        .select(['id', 'screen'])
        .where('screen', 'is not', null)
        .execute()
      const settings = await db.selectFrom('settings').selectAll().execute()
      return [
        ...credentials.map(({ account_id, type, sealed }) => ({
          place: { table: 'account_credentials', id: account_id, field: type },
          sealed,
        })),
        ...authorities.map(({ domain_id, sealed }) => ({
          place: { table: 'domain_authorities', id: domain_id, field: 'ca_private_key' },
          sealed,
        })),
        ...users.flatMap(({ id, sealed }) =>
          sealed ? [{ place: { table: 'users', id, field: 'password_hash' }, sealed }] : [],
        ),
        ...external.map(({ external_auth_id, name, sealed }) => ({
          place: { table: 'external_auth_secrets', id: external_auth_id, field: name },
          sealed,
        })),
        ...notifications.map(({ notification_id, name, sealed }) => ({
          place: { table: 'notification_secrets', id: notification_id, field: name },
          sealed,
        })),
        ...factors.map(({ user_id, sealed }) => ({
          place: { table: 'second_factors', id: user_id, field: 'secret' },
          sealed,
        })),
        ...offline.map(({ user_id, external_auth_id, sealed }) => ({
          place: { table: 'offline_proofs', id: user_id, field: external_auth_id },
          sealed,
        })),
        ...pending.map(({ account_id, type, role, sealed }) => ({
          place: { table: 'pending_secrets', id: account_id, field: `${role} ${type}` },
          sealed,
        })),
        ...tickets.map(({ id, sealed }) => ({ place: { table: 'tickets', id, field: 'password' }, sealed })),
        ...invitations.map(({ id, sealed }) => ({
          place: { table: 'invitations', id, field: 'password' },
          sealed,
        })),
        ...approvals.flatMap(({ id, screen }) =>
          screen ? [{ place: { table: 'approvals', id, field: 'screen' }, sealed: screen }] : [],
        ),
        ...settings.map(({ name, value }) => ({
          place: { table: 'settings', id: name, field: 'value' },
          sealed: value,
        })),
      ]
    },

    async replace({ place: { table, id, field }, sealed }) {
      if (table === 'account_credentials') {
        const row = db
          .updateTable('account_credentials')
          .where('account_id', '=', id)
          .where('type', '=', field)
        await row.set({ sealed }).execute()
      } else if (table === 'external_auth_secrets') {
        const row = db.updateTable('external_auth_secrets').where('external_auth_id', '=', id)
        await row.where('name', '=', field).set({ sealed }).execute()
      } else if (table === 'notification_secrets') {
        const row = db.updateTable('notification_secrets').where('notification_id', '=', id)
        await row.where('name', '=', field).set({ sealed }).execute()
      } else if (table === 'pending_secrets') {
        const [role = '', type = ''] = field.split(' ')
        await db
          .updateTable('pending_secrets')
          .where('account_id', '=', id)
          .where('type', '=', type)
          .where('role', '=', role)
          .set({ sealed })
          .execute()
      } else if (table === 'offline_proofs') {
        const row = db.updateTable('offline_proofs').where('user_id', '=', id)
        await row.where('external_auth_id', '=', field).set({ sealed }).execute()
      } else if (table === 'second_factors') {
        await db.updateTable('second_factors').where('user_id', '=', id).set({ sealed }).execute()
      } else if (table === 'domain_authorities') {
        await db.updateTable('domain_authorities').where('domain_id', '=', id).set({ sealed }).execute()
      } else if (table === 'users') {
        await db.updateTable('users').where('id', '=', id).set({ sealed_password_hash: sealed }).execute()
      } else if (table === 'tickets' || table === 'invitations') {
        await db.updateTable(table).where('id', '=', id).set({ sealed }).execute()
      } else if (table === 'approvals') {
        await db.updateTable('approvals').where('id', '=', id).set({ screen: sealed }).execute()
      } else {
        await db.updateTable('settings').where('name', '=', id).set({ value: sealed }).execute()
      }
    },
  }
}
