/** Second factors of users. Each use is one statement, so that no two processes accept one code. */
import { sql } from 'kysely'
import type { Id } from '../model/objects.ts'
import { inTransaction, type Tx } from './engine/commits.ts'
import { keptQuery } from './engine/kept-query.ts'
import { insertRow } from './engine/kept-rows.ts'
import type { Db, StoreContext } from './migrations/schema.ts'
import type { FactorRules, SecondFactorRepository } from './store.ts'

/** Each sign-in runs it. */
const byUser = keptQuery((db: Db, userId: Id) =>
  db
    .selectFrom('second_factors as f')
    .selectAll('f')
    .select(sql<number>`(select count(*) from recovery_codes as c where c.user_id = f.user_id)`.as('codes'))
    .where('f.user_id', '=', userId),
)

const requiring = keptQuery((db: Db, userId: Id, profile: string) =>
  db
    .selectFrom('user_group_members as m')
    .innerJoin('user_groups as g', 'g.id', 'm.group_id')
    .select(['g.second_factor_remember as remember', 'g.second_factor_keys as keys'])
    .where('m.user_id', '=', userId)
    .where('g.second_factor', '=', 'required')
    .unionAll(
      db
        .selectFrom('profiles')
        .select(['second_factor_remember as remember', 'second_factor_keys as keys'])
        .where('profile_name', '=', profile)
        .where('second_factor', '=', 'required'),
    ),
)

const remembered = keptQuery((db: Db, userId: Id, address: string, firstFactor: string) =>
  db
    .selectFrom('remembered_factors')
    .select(['since', 'secret_revision'])
    .where('user_id', '=', userId)
    .where('address', '=', address)
    .where('first_factor', '=', firstFactor),
)

const FORGIVEN = { tries: 0, failed: 0 }

/** Places of one user where no code is asked for. */
const MAX_PLACES = 16

export function secondFactorRepository({ db }: StoreContext): SecondFactorRepository {
  return {
    async find(userId) {
      const [row] = await byUser(db, userId)
      return (
        row && {
          sealed: row.sealed,
          begun: row.begun,
          ...(row.enrolled !== null && { enrolled: row.enrolled }),
          lastStep: row.last_step,
          drift: row.drift,
          recoveryCodes: row.codes,
          tries: row.tries,
          tried: row.tried,
          failed: row.failed,
        }
      )
    },

    async policyOf({ id, profile }) {
      return strictest(await requiring(db, id, profile))
    },

    async rulesOf(authorizationIds) {
      if (authorizationIds.length === 0) return undefined
      const rows = await db
        .selectFrom('authorizations')
        .select(['second_factor_remember as remember', 'second_factor_keys as keys'])
        .where('id', 'in', authorizationIds)
        .where('second_factor', '=', 'required')
        .execute()
      return strictest(rows)
    },

    remember: ({ id: user_id, secretRevision: secret_revision = 0 }, { address, firstFactor }, since) =>
      inTransaction(db, async (tx) => {
        // Locks the factor, with which the rest is removed.
        const factor = await tx
          .updateTable('second_factors')
          .set({ tries: 0 })
          .where('user_id', '=', user_id)
          .executeTakeFirstOrThrow()
        if (factor.numUpdatedRows === 0n) return
        const fresh = { since, secret_revision }
        await tx
          .insertInto('remembered_factors')
          .values({ user_id, address, first_factor: firstFactor, ...fresh })
          .onConflict((conflict) =>
            conflict.columns(['user_id', 'address', 'first_factor']).doUpdateSet(fresh),
          )
          .execute()
        const [oldest] = await tx
          .selectFrom('remembered_factors')
          .select('since')
          .where('user_id', '=', user_id)
          .orderBy('since', 'desc')
          .offset(MAX_PLACES)
          .limit(1)
          .execute()
        if (!oldest) return
        await tx
          .deleteFrom('remembered_factors')
          .where('user_id', '=', user_id)
          .where('since', '<=', oldest.since)
          .where((e) => e.or([e('address', '<>', address), e('first_factor', '<>', firstFactor)]))
          .execute()
      }),

    async isRemembered({ id, secretRevision = 0 }, { address, firstFactor }, { since, now }) {
      const [row] = await remembered(db, id, address, firstFactor)
      return (
        row !== undefined && row.secret_revision === secretRevision && since < row.since && row.since <= now
      )
    },

    async begin(userId, sealed, time) {
      const fresh = { sealed, begun: time, last_step: -1, drift: 0, tries: 0, tried: 0, failed: 0 }
      const rows = await db
        .insertInto('second_factors')
        .values({ user_id: userId, ...fresh, enrolled: null })
        .onConflict((conflict) =>
          conflict.column('user_id').doUpdateSet(fresh).where('second_factors.enrolled', 'is', null),
        )
        .returning('user_id')
        .execute()
      return rows.length > 0
    },

    async countTry(userId, now, { most, holdMs }) {
      // A clock that was set back forgives, too.
      const isOver = sql<boolean>`(tried <= ${now - holdMs} or tried > ${now})`
      const [row] = await db
        .updateTable('second_factors')
        .set({
          tries: sql`case when ${isOver} then 1 else tries + 1 end`,
          tried: now,
          failed: sql`failed + 1`,
        })
        .where('user_id', '=', userId)
        .where((e) => e.or([e('tries', '<', most), isOver]))
        .returning('tries')
        .execute()
      return row?.tries
    },

    async forgive(userId) {
      await db.updateTable('second_factors').set(FORGIVEN).where('user_id', '=', userId).execute()
    },

    async useStep(userId, step, drift) {
      const { numUpdatedRows } = await db
        .updateTable('second_factors')
        .set({ last_step: step, drift, ...FORGIVEN })
        .where('user_id', '=', userId)
        .where('last_step', '<', step)
        .where('enrolled', 'is not', null)
        .executeTakeFirstOrThrow()
      return numUpdatedRows > 0n
    },

    useRecoveryCode: (userId, digest) =>
      inTransaction(db, async (tx) => {
        const { numDeletedRows } = await tx
          .deleteFrom('recovery_codes')
          .where('user_id', '=', userId)
          .where('digest', '=', digest)
          .executeTakeFirstOrThrow()
        if (numDeletedRows === 0n) return false
        await tx.updateTable('second_factors').set(FORGIVEN).where('user_id', '=', userId).execute()
        return true
      }),

    confirm: (userId, { sealed, time, step, drift, digests }) =>
      inTransaction(db, async (tx) => {
        const { numUpdatedRows } = await tx
          .updateTable('second_factors')
          .set({ enrolled: time, last_step: step, drift, ...FORGIVEN })
          .where('user_id', '=', userId)
          .where('enrolled', 'is', null)
          .where('sealed', '=', sealed)
          .executeTakeFirstOrThrow()
        if (numUpdatedRows === 0n) return false
        await setCodes(tx, userId, digests)
        return true
      }),

    setRecoveryCodes: (userId, digests) =>
      inTransaction(db, async (tx) => {
        const enrolled = tx.selectFrom('second_factors').select('user_id').where('user_id', '=', userId)
        if (!(await enrolled.where('enrolled', 'is not', null).executeTakeFirst())) return false
        await setCodes(tx, userId, digests)
        return true
      }),

    remove: (userId) =>
      inTransaction(db, async (tx) => {
        const codes = tx.deleteFrom('second_factors').where('user_id', '=', userId)
        const keys = tx.deleteFrom('security_keys').where('user_id', '=', userId)
        const removed = [await codes.executeTakeFirstOrThrow(), await keys.executeTakeFirstOrThrow()]
        return removed.some(({ numDeletedRows }) => numDeletedRows > 0n)
      }),
  }
}

function strictest(rows: readonly { remember: number; keys: number }[]): FactorRules | undefined {
  if (rows.length === 0) return undefined
  return {
    rememberS: Math.min(...rows.map(({ remember }) => remember)),
    areKeysEnough: rows.every(({ keys }) => keys !== 0),
  }
}

async function setCodes(tx: Tx, userId: Id, digests: readonly Uint8Array[]): Promise<void> {
  await tx.deleteFrom('recovery_codes').where('user_id', '=', userId).execute()
  for (const digest of digests) await insertRow(tx, 'recovery_codes', { user_id: userId, digest })
}
