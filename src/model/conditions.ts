/** Conditions of authorizations: whether an approval is needed, and which reason the user has to give. Pure. */
import { MAX_APPROVAL_TIMEOUT, MAX_APPROVER_GROUPS, MAX_QUORUM, type Wanted } from './approvals.ts'
import type { Conditions } from './objects.ts'

type Flags = Pick<Conditions, 'hasComment' | 'mandatoryComment' | 'hasTicket' | 'mandatoryTicket'>
type Quorums = Pick<Conditions, 'approvalRequired' | 'activeQuorum' | 'inactiveQuorum'>

/** The conditions of an authorization that sets none. */
export const NO_CONDITIONS: Conditions = {
  isCritical: false,
  approvalRequired: false,
  approverGroupIds: [],
  activeQuorum: 1,
  inactiveQuorum: 0,
  approvalTimeout: 0,
  singleConnection: false,
  hasComment: false,
  mandatoryComment: false,
  hasTicket: false,
  mandatoryTicket: false,
  fourEyes: false,
  secondFactor: 'none',
  secondFactorRemember: 0,
  secondFactorKeys: false,
}

/**
 * Returns how many approvers have to agree now: 0 if none has to, or undefined if nothing opens now. `isActive`:
 * whether the authorization is within its timeframes; outside only approvers open it.
 */
export function quorumNow(conditions: Quorums | undefined, isActive: boolean): number | undefined {
  if (isActive) return conditions?.approvalRequired ? conditions.activeQuorum : 0
  return conditions?.approvalRequired && conditions.inactiveQuorum > 0 ? conditions.inactiveQuorum : undefined
}

/** Whether a user needs a second factor to use an authorization with these conditions. */
export function requiresFactor(conditions: Pick<Conditions, 'secondFactor'> | undefined): boolean {
  return conditions?.secondFactor === 'required'
}

/** Returns the strictest of what these conditions ask of a reason. */
export function wantedOf(all: readonly (Flags | undefined)[]): { comment: Wanted; ticket: Wanted } {
  const strictest = (has: (one: Flags) => boolean, must: (one: Flags) => boolean): Wanted => {
    if (all.some((one) => one && must(one))) return 'mandatory'
    return all.some((one) => one && has(one)) ? 'optional' : 'none'
  }
  return {
    comment: strictest(
      (one) => one.hasComment,
      (one) => one.mandatoryComment,
    ),
    ticket: strictest(
      (one) => one.hasTicket,
      (one) => one.mandatoryTicket,
    ),
  }
}

/** A field of the API with its problem. */
export interface ConditionFlaw {
  field: string
  message: string
}

/** Users in the groups of approvers, each counted once. */
export interface Members {
  all: number
  /** Those that are neither disabled, locked nor expired, and have the right to answer. */
  able: number
}

/** Returns the problem of these conditions, or undefined. */
export function conditionsFlaw(conditions: Conditions, members: Members): ConditionFlaw | undefined {
  const { approvalRequired, approverGroupIds, activeQuorum, inactiveQuorum } = conditions
  if (conditions.mandatoryComment && !conditions.hasComment)
    return { field: 'mandatory_comment', message: 'a mandatory comment needs has_comment' }
  if (conditions.mandatoryTicket && !conditions.hasTicket)
    return { field: 'mandatory_ticket', message: 'a mandatory ticket needs has_ticket' }
  if (approverGroupIds.length > MAX_APPROVER_GROUPS)
    return { field: 'approvers', message: `at most ${MAX_APPROVER_GROUPS} groups` }
  for (const [field, quorum] of [
    ['active_quorum', activeQuorum],
    ['inactive_quorum', inactiveQuorum],
  ] as const) {
    if (quorum < 0 || quorum > MAX_QUORUM) return { field, message: `expected 0 to ${MAX_QUORUM}` }
  }
  if (conditions.approvalTimeout < 0 || conditions.approvalTimeout > MAX_APPROVAL_TIMEOUT)
    return { field: 'approval_timeout', message: `expected 0 to ${MAX_APPROVAL_TIMEOUT} seconds` }
  if (!approvalRequired) return undefined
  if (approverGroupIds.length === 0)
    return { field: 'approvers', message: 'approval_required needs at least one group of approvers' }
  const [field, most] =
    activeQuorum >= inactiveQuorum
      ? (['active_quorum', activeQuorum] as const)
      : (['inactive_quorum', inactiveQuorum] as const)
  if (most === 0) return { field, message: 'approval_required needs a quorum, within timeframes or outside' }
  if (most > members.able) {
    const { all, able } = members
    const there = able === 1 ? 'one can answer' : `${able} can answer`
    const message = `of ${all} ${all === 1 ? 'user' : 'users'} in the groups of approvers ${there}, so ${most} can never agree`
    return { field, message }
  }
  return undefined
}
