import { inTransaction } from './engine/commits.ts'
import type { StoreContext } from './migrations/schema.ts'
import type { SettingRepository } from './store.ts'

export function settingRepository({ db }: StoreContext): SettingRepository {
  return {
    async get(name) {
      const row = await db.selectFrom('settings').select('value').where('name', '=', name).executeTakeFirst()
      return row?.value
    },

    async set(name, value) {
      await db
        .insertInto('settings')
        .values({ name, value })
        .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
        .execute()
    },

    async replace(name, before, value) {
      if (before === undefined) {
        const made = await db
          .insertInto('settings')
          .values({ name, value })
          .onConflict((c) => c.doNothing())
          .executeTakeFirst()
        return made.numInsertedOrUpdatedRows === 1n
      }
      const changed = await db
        .updateTable('settings')
        .set({ value })
        .where('name', '=', name)
        .where('value', '=', before)
        .executeTakeFirst()
      return changed.numUpdatedRows === 1n
    },

    async remove(name) {
      await db.deleteFrom('settings').where('name', '=', name).execute()
    },

    setOnce: (name, value) =>
      inTransaction(db, async (tx) => {
        await tx
          .insertInto('settings')
          .values({ name, value })
          .onConflict((c) => c.doNothing())
          .execute()
        const row = await tx
          .selectFrom('settings')
          .select('value')
          .where('name', '=', name)
          .executeTakeFirstOrThrow()
        return row.value
      }),
  }
}
