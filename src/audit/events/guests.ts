/** Events of guests in running sessions: `object` is the guest's name, `user` the inviting user. */
import { CLIENT, type EventKind, TARGET } from './fields.ts'
import { because, seconds, session, targetOf, who } from './phrases.ts'

const GUEST = [
  'session',
  'user',
  'api_key',
  ...CLIENT,
  'protocol',
  ...TARGET,
  'object_type',
  'object',
] as const

export const GUESTS = {
  'session.invite': {
    severity: 'notice',
    trap: false,
    meaning:
      'a user invited a guest to a running session, for `duration`; `method` is the right of the guest: `view` or `control`',
    fields: [...GUEST, 'profile', 'method', 'duration'],
    sentence: (f) =>
      `${who(f)} invited ${f.object ?? '?'} to ${f.method ?? '?'} ${session(f)} to ${targetOf(f)}${f.duration === undefined ? '' : ` for ${seconds(f.duration)}`}`,
  },
  'session.invite_change': {
    severity: 'notice',
    trap: false,
    meaning: 'a user changed the right of a guest; `method` is the new one: `view` or `control`',
    fields: [...GUEST, 'profile', 'method'],
    sentence: (f) => `${who(f)} has ${f.object ?? '?'} ${f.method ?? '?'} ${session(f)} to ${targetOf(f)}`,
  },
  'session.invite_withdraw': {
    severity: 'notice',
    trap: false,
    meaning:
      'an invitation was withdrawn, and its guest had to leave. Without a `reason` the user withdrew it; with one, the inviting user, who is `user`, lost the basis of the sign-in or the right',
    fields: [...GUEST, 'profile', 'reason'],
    sentence: (f) =>
      f.reason === undefined
        ? `${who(f)} withdrew the invitation of ${f.object ?? '?'} to ${session(f)} to ${targetOf(f)}`
        : `the invitation of ${f.object ?? '?'} by ${who(f)} to ${session(f)} to ${targetOf(f)} was withdrawn${because(f)}`,
  },
  'session.guest_join': {
    severity: 'notice',
    trap: false,
    meaning:
      "a guest came into a running session; the client is the guest's, `user` is who invited them, `method` what they may do",
    fields: [...GUEST, 'method'],
    sentence: (f) =>
      `${f.object ?? '?'}, invited by ${who(f)}, came into ${session(f)} to ${targetOf(f)} (${f.method ?? '?'})`,
  },
  'session.guest_leave': {
    severity: 'notice',
    trap: false,
    meaning: "a guest left a running session; the client is the guest's, `user` is who invited them",
    fields: GUEST,
    sentence: (f) => `${f.object ?? '?'}, invited by ${who(f)}, left ${session(f)} to ${targetOf(f)}`,
  },
} as const satisfies Record<string, EventKind>
