/** Events of the servers that judge sign-ins. */
import { CLIENT, type EventKind } from './fields.ts'
import { who } from './phrases.ts'

export const SIGN_IN_SERVERS = {
  'sign_in.test': {
    severity: 'notice',
    trap: false,
    meaning:
      'an administrator tries the servers of an external authentication or an authentication domain, as the user `account` of theirs if there is one',
    fields: ['user', 'profile', 'api_key', ...CLIENT, 'object_type', 'object', 'account'],
    sentence: (f) =>
      `${who(f)} tries the servers of ${f.object ?? '?'}${f.account === undefined ? '' : ` as ${f.account}`}`,
  },
  'notification.test': {
    severity: 'notice',
    trap: false,
    meaning: 'an administrator tries a notification: it is sent this event, and no other receiver is tried',
    fields: ['user', 'profile', 'api_key', ...CLIENT, 'object_type', 'object'],
    sentence: (f) => `${who(f)} tries the notification ${f.object ?? '?'}`,
  },
} as const satisfies Record<string, EventKind>
