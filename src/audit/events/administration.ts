/** Events of secrets that are handed out, of what administrators change, and of the broker itself. */
import { CLIENT, type EventKind, OBJECT } from '../fields.ts'
import { account, because, deed, thing, who } from '../phrases.ts'

export const ADMINISTRATION = {
  'checkout.out': {
    severity: 'notice',
    trap: false,
    meaning: 'the secret of an account was handed to a user',
    fields: [
      'user',
      'api_key',
      ...CLIENT,
      'account',
      'domain',
      'device',
      'authorization',
      'object',
      'duration',
    ],
    sentence: (f) => `${who(f)} checked out ${account(f)}`,
  },
  'checkout.in': {
    severity: 'notice',
    trap: false,
    meaning: 'a checked-out secret was returned',
    fields: ['user', 'api_key', ...CLIENT, 'account', 'domain', 'device', 'object'],
    sentence: (f) => `${who(f)} checked in ${account(f)}`,
  },
  'checkout.expired': {
    severity: 'notice',
    trap: false,
    meaning: 'a checkout was over before the secret was returned',
    fields: ['user', 'api_key', 'account', 'domain', 'device', 'object', 'result', 'reason'],
    sentence: (f) =>
      `the checkout of ${account(f)} by ${who(f)} ${f.result === 'failure' ? 'could not be ended' : 'is over'}${because(f)}`,
  },
  'checkout.denied': {
    severity: 'warning',
    trap: true,
    meaning: 'a checkout was refused',
    fields: ['user', 'api_key', ...CLIENT, 'account', 'domain', 'device', 'reason'],
    sentence: (f) => `${who(f)} was refused the checkout of ${account(f)}${because(f)}`,
  },
  'object.create': {
    severity: 'notice',
    trap: false,
    meaning: 'an administrator created an object; `method` is `import` for a row of a CSV table',
    fields: OBJECT,
    sentence: (f) => deed(f, 'created', 'create', thing(f)),
  },
  'object.update': {
    severity: 'notice',
    trap: false,
    meaning:
      'an administrator changed an object; `changes` says what, never a secret; `method` as for `object.create`',
    fields: OBJECT,
    sentence: (f) =>
      deed(f, 'changed', 'change', thing(f)) + (f.changes && f.result !== 'failure' ? `: ${f.changes}` : ''),
  },
  'object.delete': {
    severity: 'notice',
    trap: false,
    meaning: 'an administrator removed an object',
    fields: OBJECT,
    sentence: (f) => deed(f, 'removed', 'remove', thing(f)),
  },
  'secret.change': {
    severity: 'notice',
    trap: false,
    meaning: 'a stored secret, a password or the master key was replaced',
    fields: [
      'user',
      'api_key',
      ...CLIENT,
      'object_type',
      'object',
      'account',
      'domain',
      'device',
      'result',
      'reason',
    ],
    sentence: (f) =>
      deed(f, 'changed', 'change', `the secret of ${thing(f)}`) + (f.result === 'failure' ? '' : because(f)),
  },
  'sink.down': {
    severity: 'warning',
    trap: true,
    meaning: 'a receiver of events cannot be reached; written once, until it is back',
    fields: ['object_type', 'object', 'reason'],
    sentence: (f) => `the ${thing(f)} cannot be reached${because(f)}`,
  },
  'service.start': {
    severity: 'notice',
    trap: false,
    meaning:
      'the broker is ready; `object` is its version, `reason` which backup its data was restored from since the last start',
    fields: ['object_type', 'object', 'reason'],
    sentence: (f) => `sallyport ${f.object ?? ''} started${because(f)}`,
  },
  'service.stop': {
    severity: 'notice',
    trap: false,
    meaning: 'the broker stops',
    fields: ['object_type', 'object', 'reason'],
    sentence: (f) => `sallyport ${f.object ?? ''} stops${because(f)}`,
  },
} as const satisfies Record<string, EventKind>
