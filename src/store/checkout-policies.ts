import { nameKey } from '../model/names.ts'
import type { CheckoutPolicy } from '../model/objects.ts'
import { FactoryError } from './engine/errors.ts'
import type { CheckoutPolicyRow, Db, StoreContext } from './migrations/schema.ts'
import { namedRepository } from './named.ts'
import { cleared, flag, key, refuseInUse, setColumns } from './query.ts'
import { column, nullable } from './searchable.ts'
import type { Repository } from './store.ts'

const TYPE = 'checkout policy'
export const CHECKOUT_POLICY_FIELDS = {
  policy_name: column('name', 'name_key'),
  description: column('text', 'description'),
  enable_lock: column('flag', 'enable_lock'),
  duration: nullable('integer', 'duration'),
  extension: column('integer', 'extension'),
  max_duration: column('integer', 'max_duration'),
  change_credentials_at_checkin: column('flag', 'change_at_checkin'),
  is_factory: column('flag', 'is_factory'),
  id: column('id', 'id'),
} as const

/** Factory policies can be changed, but neither renamed nor removed: other objects rely on them. */
export function checkoutPolicyRepository(context: StoreContext): Repository<CheckoutPolicy> {
  return namedRepository(context, {
    type: TYPE,
    table: 'checkout_policies',
    fields: CHECKOUT_POLICY_FIELDS,
    standard: 'policy_name',
    select,
    object: policy,
    nameOf: ({ policyName }) => policyName,

    insert: async (tx, id, object: Omit<CheckoutPolicy, 'id'>) => {
      await tx
        .insertInto('checkout_policies')
        .values({
          id,
          policy_name: object.policyName,
          name_key: nameKey(object.policyName),
          description: object.description,
          enable_lock: Number(object.enableLock),
          duration: object.duration ?? null,
          extension: object.extension,
          max_duration: object.maxDuration,
          change_at_checkin: Number(object.changesAtCheckin ?? false),
          is_factory: 0,
        })
        .execute()
    },

    change: async (tx, id, change, old) => {
      const isRenamed = change.policyName !== undefined && change.policyName !== old.policyName
      if (old.isFactory && isRenamed) throw new FactoryError(TYPE, old.policyName, 'renamed')
      await setColumns(tx, 'checkout_policies', id, {
        policy_name: change.policyName,
        name_key: key(change.policyName),
        description: change.description,
        enable_lock: flag(change.enableLock),
        duration: cleared(change, 'duration'),
        extension: change.extension,
        max_duration: change.maxDuration,
        change_at_checkin: flag(change.changesAtCheckin),
      })
    },

    requireUnused: async (tx, { id, policyName, isFactory }) => {
      if (isFactory) throw new FactoryError(TYPE, policyName, 'removed')
      await refuseInUse(TYPE, policyName, [
        {
          type: 'account',
          query: tx
            .selectFrom('accounts as a')
            .innerJoin('domains as d', 'd.id', 'a.domain_id')
            .select((e) => e(e('a.account_name', '||', '@'), '||', e.ref('d.domain_name')).as('name'))
            .where('a.checkout_policy_id', '=', id)
            .orderBy('a.name_key'),
        },
      ])
    },
  })
}

function select(db: Db) {
  return db.selectFrom('checkout_policies').selectAll()
}

function policy(row: CheckoutPolicyRow): CheckoutPolicy {
  return {
    id: row.id,
    policyName: row.policy_name,
    description: row.description,
    enableLock: row.enable_lock !== 0,
    ...(row.duration !== null && { duration: row.duration }),
    extension: row.extension,
    maxDuration: row.max_duration,
    ...(row.change_at_checkin !== 0 && { changesAtCheckin: true }),
    isFactory: row.is_factory !== 0,
  }
}
