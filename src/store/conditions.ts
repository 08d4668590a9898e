/** Conditions of authorizations, as columns: those that decide are read with each target. */
import { sql } from 'kysely'
import { NO_CONDITIONS } from '../model/conditions.ts'
import type { Conditions, FactorPolicy, Id } from '../model/objects.ts'
import { jsonList } from './engine/json.ts'
import { setLinks } from './links.ts'
import type { AuthorizationRow } from './migrations/schema.ts'
import { list, requireIds, type Tx } from './query.ts'
import { column } from './searchable.ts'
import type { RowConditions } from './store.ts'

export const CONDITION_FIELDS = {
  is_critical: column('flag', 'a.is_critical'),
  approval_required: column('flag', 'a.approval_required'),
  active_quorum: column('integer', 'a.active_quorum'),
  inactive_quorum: column('integer', 'a.inactive_quorum'),
  approval_timeout: column('integer', 'a.approval_timeout'),
  single_connection: column('flag', 'a.single_connection'),
  has_comment: column('flag', 'a.has_comment'),
  mandatory_comment: column('flag', 'a.mandatory_comment'),
  has_ticket: column('flag', 'a.has_ticket'),
  mandatory_ticket: column('flag', 'a.mandatory_ticket'),
  four_eyes: column('flag', 'a.four_eyes'),
  second_factor: column('label', 'a.second_factor'),
  second_factor_remember: column('integer', 'a.second_factor_remember'),
  second_factor_keys: column('flag', 'a.second_factor_keys'),
} as const

/** Ids of the approvers' groups, as JSON; `of`: name of the authorizations in the query. */
export const approverGroups = (of: string) =>
  sql<string>`(select ${jsonList(sql`p.group_id`, sql`p.group_id`)} from authorization_approvers p where p.authorization_id = ${sql.ref(`${of}.id`)})`

export function conditionColumns(conditions: Conditions) {
  return {
    is_critical: Number(conditions.isCritical),
    approval_required: Number(conditions.approvalRequired),
    active_quorum: conditions.activeQuorum,
    inactive_quorum: conditions.inactiveQuorum,
    approval_timeout: conditions.approvalTimeout,
    single_connection: Number(conditions.singleConnection),
    has_comment: Number(conditions.hasComment),
    mandatory_comment: Number(conditions.mandatoryComment),
    has_ticket: Number(conditions.hasTicket),
    mandatory_ticket: Number(conditions.mandatoryTicket),
    four_eyes: Number(conditions.fourEyes),
    second_factor: conditions.secondFactor,
    second_factor_remember: conditions.secondFactorRemember,
    second_factor_keys: Number(conditions.secondFactorKeys),
  }
}

export async function setApprovers(tx: Tx, authorizationId: Id, groupIds: readonly Id[]): Promise<void> {
  await requireIds(tx, 'user_groups', groupIds, 'authorization', 'approvers')
  const rows = [...new Set(groupIds)].map((id) => ({ group_id: id }))
  await setLinks(tx, 'authorization_approvers', { authorization_id: authorizationId }, rows)
}

/** Returns the conditions, or undefined if none is set. */
export function conditionsOf(row: AuthorizationRow & { approvers: string }): Conditions | undefined {
  const approverGroupIds = list<Id>(row.approvers)
  const isSet =
    approverGroupIds.length > 0 ||
    row.is_critical + row.approval_required + row.single_connection + row.has_comment + row.has_ticket > 0 ||
    row.active_quorum !== NO_CONDITIONS.activeQuorum ||
    row.inactive_quorum + row.approval_timeout + row.four_eyes > 0 ||
    row.second_factor !== NO_CONDITIONS.secondFactor ||
    row.second_factor_remember + row.second_factor_keys > 0
  if (!isSet) return undefined
  return {
    ...decided(row),
    approverGroupIds,
    approvalTimeout: row.approval_timeout,
    singleConnection: row.single_connection !== 0,
    secondFactorRemember: row.second_factor_remember,
    secondFactorKeys: row.second_factor_keys !== 0,
  }
}

const decided = (row: AuthorizationRow): RowConditions => ({
  isCritical: row.is_critical !== 0,
  approvalRequired: row.approval_required !== 0,
  activeQuorum: row.active_quorum,
  inactiveQuorum: row.inactive_quorum,
  hasComment: row.has_comment !== 0,
  mandatoryComment: row.mandatory_comment !== 0,
  hasTicket: row.has_ticket !== 0,
  mandatoryTicket: row.mandatory_ticket !== 0,
  fourEyes: row.four_eyes !== 0,
  secondFactor: row.second_factor as FactorPolicy,
})

/** One number for the flags: ten thousand targets are read at a time. */
export const DEMANDS =
  sql<number>`a.is_critical + 2 * a.approval_required + 4 * a.has_comment + 8 * a.mandatory_comment + 16 * a.has_ticket + 32 * a.mandatory_ticket + 64 * a.four_eyes + case a.second_factor when 'required' then 128 else 0 end`.as(
    'demands',
  )

/** Returns the conditions that decide, or undefined if there are none. */
export function rowConditions(
  demands: number,
  activeQuorum: number,
  inactiveQuorum: number,
): RowConditions | undefined {
  if (demands === 0) return undefined
  const has = (bit: number) => (demands & bit) !== 0
  return {
    isCritical: has(1),
    approvalRequired: has(2),
    activeQuorum,
    inactiveQuorum,
    hasComment: has(4),
    mandatoryComment: has(8),
    hasTicket: has(16),
    mandatoryTicket: has(32),
    fourEyes: has(64),
    secondFactor: has(128) ? 'required' : 'none',
  }
}
