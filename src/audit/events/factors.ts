/** Events of second factors: `object` is the user whose it is. */
import { CLIENT, type EventKind, LOCAL } from './fields.ts'
import { seconds, who } from './phrases.ts'

const FACTOR = ['user', 'profile', 'api_key', ...CLIENT, 'object_type', 'object'] as const

export const FACTORS = {
  'factor.enrol': {
    severity: 'notice',
    trap: false,
    meaning: 'a user has enrolled an authenticator: sign-ins ask for its codes from now on',
    fields: FACTOR,
    sentence: (f) => `${who(f)} enrolled an authenticator`,
  },
  'factor.renew': {
    severity: 'notice',
    trap: false,
    meaning: 'a user has replaced the recovery codes',
    fields: FACTOR,
    sentence: (f) => `${who(f)} replaced the recovery codes`,
  },
  'factor.recovery': {
    severity: 'warning',
    trap: false,
    meaning: 'a user signed in by a recovery code in place of a one-time code; `count` are left',
    fields: ['user', ...CLIENT, 'protocol', 'count'],
    sentence: (f) => `${who(f)} used a recovery code, ${f.count ?? 0} are left`,
  },
  'factor.proved': {
    severity: 'notice',
    trap: false,
    meaning:
      'a user who had signed in without a second factor proved one, since an authorization requires it',
    fields: ['user', ...CLIENT, 'protocol'],
    sentence: (f) => `${who(f)} proved a second factor`,
  },
  'factor.remembered': {
    severity: 'notice',
    trap: false,
    meaning:
      'a user signed in without a one-time code, since one was right from the same address a while ago',
    fields: ['user', ...CLIENT, 'protocol'],
    sentence: (f) => `${who(f)} signed in by a one-time code of a while ago`,
  },
  'factor.key_add': {
    severity: 'notice',
    trap: false,
    meaning:
      'a user has added a security key as a second factor in browsers; `object` is the user and its name',
    fields: FACTOR,
    sentence: (f) => `${who(f)} added the security key ${f.object ?? '?'}`,
  },
  'factor.key_remove': {
    severity: 'warning',
    trap: false,
    meaning: 'a security key was removed; `object` is its user and its name',
    fields: FACTOR,
    sentence: (f) => `${who(f)} removed the security key ${f.object ?? '?'}`,
  },
  'factor.held': {
    severity: 'warning',
    trap: false,
    meaning:
      'one-time codes of a user, `object`, are held up for `duration`, whether right or wrong: too many in a row were wrong; `client_ip` sent the last one',
    fields: ['client_ip', 'object_type', 'object', 'duration'],
    sentence: (f) =>
      `one-time codes of the user ${f.object ?? '?'} are held up${f.duration === undefined ? '' : ` for ${seconds(f.duration)}`}`,
  },
  'factor.release': {
    severity: 'warning',
    trap: false,
    meaning: 'an administrator let one-time codes of a user, `object`, be judged again after wrong ones',
    fields: FACTOR,
    sentence: (f) => `${who(f)} ended the hold of one-time codes of the user ${f.object ?? '?'}`,
  },
  'factor.reset': {
    severity: 'warning',
    trap: false,
    meaning: 'an administrator removed the second factor of a user, `object`',
    fields: [...FACTOR, ...LOCAL],
    sentence: (f) => `${who(f)} reset the second factor of the user ${f.object ?? '?'}`,
  },
} as const satisfies Record<string, EventKind>
