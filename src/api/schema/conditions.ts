/** Fields of an authorization's conditions: approvals, reasons, and what is critical. */
import { type Static, Type } from 'typebox'
import { MAX_APPROVAL_TIMEOUT, MAX_APPROVER_GROUPS, MAX_QUORUM } from '../../model/approvals.ts'
import { conditionsFlaw, type Members, NO_CONDITIONS } from '../../model/conditions.ts'
import { type Conditions, FACTOR_POLICIES, type Id, MAX_REMEMBERED_S } from '../../model/objects.ts'
import { fieldError } from '../http/errors.ts'
import { exact, oneOf } from './fields.ts'

const flag = (description: string) => Type.Boolean({ description })
const quorum = (description: string) => Type.Integer({ minimum: 0, maximum: MAX_QUORUM, description })

export const conditionFields = {
  is_critical: flag('default false; the event session.open of its sessions has `critical`'),
  approval_required: flag('default false: sessions and checkouts need an approval'),
  approvers: Type.Array(Type.String({ maxLength: 512 }), {
    maxItems: MAX_APPROVER_GROUPS,
    description: 'names of user groups; their members may answer, with `approvals`: execute',
  }),
  active_quorum: quorum('default 1: approvers that have to agree within the timeframes; 0: none has to'),
  inactive_quorum: quorum('default 0: the same outside of the timeframes; 0: nothing opens then'),
  approval_timeout: Type.Integer({
    minimum: 0,
    maximum: MAX_APPROVAL_TIMEOUT,
    description: 'default 0: seconds for the answer; 0: until the asked time is over',
  }),
  single_connection: flag('default false: an approval opens one session, or one checkout, only'),
  has_comment: flag('default false: the user is asked for a comment'),
  mandatory_comment: flag('default false: and has to give one'),
  has_ticket: flag('default false: the user is asked for a ticket'),
  mandatory_ticket: flag('default false: and has to give one'),
  four_eyes: flag(
    'default false: a session begins when another user watches it, and its input is suspended while nobody does',
  ),
  second_factor: oneOf(
    FACTOR_POLICIES,
    'default none; required: sessions and checkouts need a one-time code on their connection, unless another authorization gives the same without',
  ),
  second_factor_remember: Type.Integer({
    minimum: 0,
    maximum: MAX_REMEMBERED_S,
    description:
      'default 0: seconds for which no code is asked for again after a right one from the same address; 0: none',
  }),
  second_factor_keys: flag(
    'default false: an SSH key (FIDO) counts as both factors when its token has checked a PIN or a finger',
  ),
}

type Body = Partial<Static<ReturnType<typeof bodyOf>>>
const bodyOf = () => exact(conditionFields)

/** Returns the conditions that a body changes, or undefined if it names none. `approvers`: ids of its groups. */
export function changedConditions(
  body: Body,
  approvers: readonly Id[] | undefined,
  old: Conditions = NO_CONDITIONS,
): Conditions | undefined {
  if (!Object.keys(conditionFields).some((field) => Object.hasOwn(body, field))) return undefined
  return {
    isCritical: body.is_critical ?? old.isCritical,
    approvalRequired: body.approval_required ?? old.approvalRequired,
    approverGroupIds: approvers ? [...approvers].sort() : old.approverGroupIds,
    activeQuorum: body.active_quorum ?? old.activeQuorum,
    inactiveQuorum: body.inactive_quorum ?? old.inactiveQuorum,
    approvalTimeout: body.approval_timeout ?? old.approvalTimeout,
    singleConnection: body.single_connection ?? old.singleConnection,
    hasComment: body.has_comment ?? old.hasComment,
    mandatoryComment: body.mandatory_comment ?? old.mandatoryComment,
    hasTicket: body.has_ticket ?? old.hasTicket,
    mandatoryTicket: body.mandatory_ticket ?? old.mandatoryTicket,
    fourEyes: body.four_eyes ?? old.fourEyes,
    secondFactor: body.second_factor ?? old.secondFactor,
    secondFactorRemember: body.second_factor_remember ?? old.secondFactorRemember,
    secondFactorKeys: body.second_factor_keys ?? old.secondFactorKeys,
  }
}

/** @throws ApiError `invalid_field` for conditions that contradict each other, or can never be met */
export async function checkConditions(
  conditions: Conditions | undefined,
  membersOf: (groupIds: readonly Id[]) => Promise<Members>,
): Promise<void> {
  if (!conditions) return
  const members = conditions.approvalRequired
    ? await membersOf(conditions.approverGroupIds)
    : { all: 0, able: 0 }
  const flaw = conditionsFlaw(conditions, members)
  if (flaw) throw fieldError('invalid_field', flaw.field, flaw.message)
}

/** Returns the conditions as the API shows them. */
export function shownConditions(conditions: Conditions = NO_CONDITIONS, approvers: string[]) {
  return {
    is_critical: conditions.isCritical,
    approval_required: conditions.approvalRequired,
    approvers,
    active_quorum: conditions.activeQuorum,
    inactive_quorum: conditions.inactiveQuorum,
    approval_timeout: conditions.approvalTimeout,
    single_connection: conditions.singleConnection,
    has_comment: conditions.hasComment,
    mandatory_comment: conditions.mandatoryComment,
    has_ticket: conditions.hasTicket,
    mandatory_ticket: conditions.mandatoryTicket,
    four_eyes: conditions.fourEyes,
    second_factor: conditions.secondFactor,
    second_factor_remember: conditions.secondFactorRemember,
    second_factor_keys: conditions.secondFactorKeys,
  }
}
