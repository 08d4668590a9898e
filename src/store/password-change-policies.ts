import { nameKey } from '../model/names.ts'
import type { PasswordChangePolicy, SshKeyType } from '../model/password-change.ts'
import { FactoryError } from './engine/errors.ts'
import type { Db, PasswordChangePolicyRow, StoreContext } from './migrations/schema.ts'
import { namedRepository } from './named.ts'
import { cleared, flag, key, refuseInUse, setColumns } from './query.ts'
import { column, nullable } from './searchable.ts'
import type { Repository } from './store.ts'

const TYPE = 'password change policy'
export const PASSWORD_CHANGE_POLICY_FIELDS = {
  password_change_policy_name: column('name', 'name_key'),
  description: column('text', 'description'),
  password_length: column('integer', 'password_length'),
  lower_chars: nullable('integer', 'lower_chars'),
  upper_chars: nullable('integer', 'upper_chars'),
  digit_chars: nullable('integer', 'digit_chars'),
  special_chars: nullable('integer', 'special_chars'),
  ssh_key_type: column('label', 'ssh_key_type'),
  ssh_key_size: nullable('integer', 'ssh_key_size'),
  change_period: nullable('text', 'change_period'),
  check_period: nullable('text', 'check_period'),
  time_zone: column('text', 'time_zone'),
  max_age: nullable('integer', 'max_age'),
  reconcile: column('flag', 'reconcile'),
  is_factory: column('flag', 'is_factory'),
  id: column('id', 'id'),
} as const

/** Factory policies can be changed, but neither renamed nor removed. */
export function passwordChangePolicyRepository(context: StoreContext): Repository<PasswordChangePolicy> {
  return namedRepository(context, {
    type: TYPE,
    table: 'password_change_policies',
    fields: PASSWORD_CHANGE_POLICY_FIELDS,
    standard: 'password_change_policy_name',
    select,
    object: policy,
    nameOf: ({ policyName }) => policyName,

    insert: async (tx, id, object: Omit<PasswordChangePolicy, 'id'>) => {
      await tx
        .insertInto('password_change_policies')
        .values({
          id,
          policy_name: object.policyName,
          name_key: nameKey(object.policyName),
          description: object.description,
          password_length: object.length,
          ...minimumsOf(object.minimums),
          exclude_chars: object.excluded,
          ssh_key_type: object.keyType,
          ssh_key_size: object.keySize ?? null,
          change_period: object.changePeriod ?? null,
          check_period: object.checkPeriod ?? null,
          time_zone: object.timeZone,
          max_age: object.maxAge ?? null,
          reconcile: Number(object.isReconciled),
          is_factory: 0,
        })
        .execute()
    },

    change: async (tx, id, change, old) => {
      const isRenamed = change.policyName !== undefined && change.policyName !== old.policyName
      if (old.isFactory && isRenamed) throw new FactoryError(TYPE, old.policyName, 'renamed')
      await setColumns(tx, 'password_change_policies', id, {
        policy_name: change.policyName,
        name_key: key(change.policyName),
        description: change.description,
        password_length: change.length,
        ...(change.minimums && minimumsOf(change.minimums)),
        exclude_chars: change.excluded,
        ssh_key_type: change.keyType,
        ssh_key_size: cleared(change, 'keySize'),
        change_period: cleared(change, 'changePeriod'),
        check_period: cleared(change, 'checkPeriod'),
        time_zone: change.timeZone,
        max_age: cleared(change, 'maxAge'),
        reconcile: flag(change.isReconciled),
      })
    },

    requireUnused: async (tx, { id, policyName, isFactory }) => {
      if (isFactory) throw new FactoryError(TYPE, policyName, 'removed')
      await refuseInUse(TYPE, policyName, [
        {
          type: 'domain',
          query: tx
            .selectFrom('domains')
            .select('domain_name as name')
            .where('change_policy_id', '=', id)
            .orderBy('name_key'),
        },
      ])
    },
  })
}

function minimumsOf({ lower, upper, digit, special }: PasswordChangePolicy['minimums']) {
  return {
    lower_chars: lower ?? null,
    upper_chars: upper ?? null,
    digit_chars: digit ?? null,
    special_chars: special ?? null,
  }
}

function select(db: Db) {
  return db.selectFrom('password_change_policies').selectAll()
}

export function policy(row: PasswordChangePolicyRow): PasswordChangePolicy {
  return {
    id: row.id,
    policyName: row.policy_name,
    description: row.description,
    length: row.password_length,
    minimums: {
      ...(row.lower_chars !== null && { lower: row.lower_chars }),
      ...(row.upper_chars !== null && { upper: row.upper_chars }),
      ...(row.digit_chars !== null && { digit: row.digit_chars }),
      ...(row.special_chars !== null && { special: row.special_chars }),
    },
    excluded: row.exclude_chars,
    keyType: row.ssh_key_type as SshKeyType,
    ...(row.ssh_key_size !== null && { keySize: row.ssh_key_size }),
    ...(row.change_period !== null && { changePeriod: row.change_period }),
    ...(row.check_period !== null && { checkPeriod: row.check_period }),
    timeZone: row.time_zone,
    ...(row.max_age !== null && { maxAge: row.max_age }),
    isReconciled: row.reconcile !== 0,
    isFactory: row.is_factory !== 0,
  }
}
