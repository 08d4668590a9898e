/** Events of approvals: requests, answers, and their ends. */
import { CLIENT, type EventFields, type EventKind, PLACE } from './fields.ts'
import { account, because, seconds, targetOf, who } from './phrases.ts'

const ABOUT = [
  'session',
  'user',
  'profile',
  'api_key',
  ...CLIENT,
  'protocol',
  ...PLACE,
  'authorization',
  'object_type',
  'object',
  'reason',
] as const

const about = (f: EventFields) =>
  f.object_type === 'command'
    ? `a command on ${targetOf(f)}`
    : f.object_type === 'checkout'
      ? `the checkout of ${account(f)}`
      : `a session to ${targetOf(f)}`
const lasting = (f: EventFields) => (f.duration === undefined ? '' : ` for ${seconds(f.duration)}`)

export const APPROVALS = {
  'approval.request': {
    severity: 'notice',
    trap: false,
    meaning:
      'a user asks approvers; `object` is the id of the request and `object_type` what it is about (`session`, `checkout`, `command`), `count` how many have to agree, `duration` for how long, `reason` the comment',
    fields: [...ABOUT, 'duration', 'count', 'ticket', 'rule'],
    sentence: (f) => `${who(f)} asks for ${about(f)}${lasting(f)}${because(f)}`,
  },
  'approval.answer': {
    severity: 'notice',
    trap: false,
    meaning:
      "an approver answered the request of `holder`: `result` is `accepted` or `rejected`, or `failure` if the answer did not count; `reason` is the approver's comment, `ticket` that of the request",
    fields: [...ABOUT, 'duration', 'ticket', 'holder', 'result'],
    sentence: (f) =>
      f.result === 'failure'
        ? `the answer of ${who(f)} to ${f.holder ?? '?'} could not count${because(f)}`
        : `${who(f)} ${f.result ?? 'answered'} the request of ${f.holder ?? '?'} for ${about(f)}${because(f)}`,
  },
  'approval.end': {
    severity: 'notice',
    trap: false,
    meaning:
      'a request ended without an answer, or an accepted one was taken back: `result` is `cancelled`, `expired` or `revoked`, `user` the actor, `holder` the requester; `failure` if it could not be stored',
    fields: [...ABOUT, 'holder', 'result'],
    sentence: (f) =>
      f.result === 'failure'
        ? `the request of ${f.holder ?? '?'} for ${about(f)} could not be stored${because(f)}`
        : f.result === 'expired'
          ? `the request of ${f.holder ?? '?'} for ${about(f)} was not answered in time`
          : `${who(f)} ${f.result ?? 'ended'} the approval of ${f.holder ?? '?'} for ${about(f)}${because(f)}`,
  },
} as const satisfies Record<string, EventKind>
