/** Events of revealed secrets, of administrators' changes, and of the broker itself. */
import { CLIENT, COUNTED, type EventKind, LOCAL, OBJECT } from './fields.ts'
import { account, because, deed, seconds, thing, times, who } from './phrases.ts'

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
      'reason',
      'ticket',
      'approval',
    ],
    sentence: (f) =>
      `${who(f)} checked out ${account(f)}${f.ticket === undefined ? '' : ` for ticket ${f.ticket}`}${because(f)}`,
  },
  'checkout.extended': {
    severity: 'notice',
    trap: false,
    meaning: 'a user extended a checkout by `duration`',
    fields: ['user', 'api_key', ...CLIENT, 'account', 'domain', 'device', 'object', 'duration'],
    sentence: (f) => `${who(f)} extended the checkout of ${account(f)} by ${seconds(f.duration ?? 0)}`,
  },
  'checkout.forced': {
    severity: 'warning',
    trap: false,
    meaning: "a user took back another's checkout; `holder` is whose it was",
    fields: [
      'user',
      'profile',
      'api_key',
      ...CLIENT,
      'account',
      'domain',
      'device',
      'object',
      'holder',
      'reason',
    ],
    sentence: (f) => `${who(f)} took back the checkout of ${account(f)} by ${f.holder ?? '?'}${because(f)}`,
  },
  'checkout.in': {
    severity: 'notice',
    trap: false,
    meaning: 'a checked-out secret was returned',
    fields: ['user', 'api_key', ...CLIENT, 'account', 'domain', 'device', 'object', 'reason'],
    sentence: (f) => `${who(f)} checked in ${account(f)}${because(f)}`,
  },
  'checkout.expired': {
    severity: 'notice',
    trap: false,
    meaning:
      'a checkout expired before the secret was returned, or its user lost the right to it: the reason says which',
    fields: ['user', 'api_key', 'account', 'domain', 'device', 'object', 'result', 'reason'],
    sentence: (f) =>
      `the checkout of ${account(f)} by ${who(f)} ${f.result === 'failure' ? 'could not be ended' : 'is over'}${because(f)}`,
  },
  'checkout.denied': {
    severity: 'warning',
    trap: true,
    meaning: 'a checkout was refused',
    fields: ['user', 'api_key', ...CLIENT, 'account', 'domain', 'device', 'reason', ...COUNTED],
    sentence: (f) => `${who(f)} was refused the checkout of ${account(f)}${because(f)}${times(f)}`,
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
  'object.export': {
    severity: 'notice',
    trap: false,
    meaning: 'objects of one kind were exported as a table; no secrets are in it',
    fields: ['user', 'profile', ...CLIENT, 'object_type', ...LOCAL],
    sentence: (f) => `${who(f)} exported the table ${f.object_type ?? '?'}`,
  },
  'secret.change': {
    severity: 'notice',
    trap: false,
    meaning:
      'a stored secret, a password or a key of the bastion was replaced; `method` of one that was changed at its target: `checkin`, `session`, `schedule`, `demand` or `mismatch`; of the signing key `signer` is the id of the one that signs from there on',
    fields: [
      'user',
      'api_key',
      ...CLIENT,
      'method',
      'object_type',
      'object',
      'account',
      'domain',
      'device',
      'signer',
      'result',
      'reason',
      ...LOCAL,
    ],
    sentence: (f) =>
      deed(f, 'changed', 'change', `the secret of ${thing(f)}`) + (f.result === 'failure' ? '' : because(f)),
  },
  'secret.request': {
    severity: 'notice',
    trap: false,
    meaning:
      'a user asked for a change of secrets at their target, of an account or of all accounts of a domain; `method` is `force` for one that ends checkouts and sessions, and `reason` its comment',
    fields: [
      'user',
      'profile',
      'api_key',
      ...CLIENT,
      'method',
      'object_type',
      'object',
      'account',
      'domain',
      'device',
      'reason',
    ],
    sentence: (f) =>
      `${who(f)} asked for a ${f.method === 'force' ? 'forced ' : ''}change of the secrets of ${thing(f)}${because(f)}`,
  },
  'secret.begin': {
    severity: 'notice',
    trap: false,
    meaning:
      'the secret of an account is about to be changed at its target; `secret.change` says how it ended',
    fields: ['user', 'method', 'object_type', 'object', 'account', 'domain', 'device'],
    sentence: (f) => `the change of the secret of ${thing(f)} begins (${f.method ?? 'demand'})`,
  },
  'secret.mismatch': {
    severity: 'alert',
    trap: false,
    meaning:
      'a target refuses the stored secret of an account, or it is not known which secret the target has',
    fields: ['user', 'method', 'object_type', 'object', 'account', 'domain', 'device', 'reason'],
    sentence: (f) => `the stored secret of ${thing(f)} is not the target's${because(f)}`,
  },
  'sink.down': {
    severity: 'warning',
    trap: true,
    meaning: 'a receiver of events cannot be reached; written once, until it is back',
    fields: ['object_type', 'object', 'reason'],
    sentence: (f) => `the ${thing(f)} cannot be reached${because(f)}`,
  },
  'sink.up': {
    severity: 'notice',
    trap: true,
    meaning: 'a receiver of events that could not be reached is back; `count` rows of the log waited for it',
    fields: ['object_type', 'object', 'count'],
    sentence: (f) => `the ${thing(f)} is back, ${f.count ?? 0} rows of the audit log waited for it`,
  },
  'sink.begin': {
    severity: 'warning',
    trap: true,
    meaning:
      'a receiver of events has no position of its own that counts: it is new, or its position was lost; `reason` says from which row on it gets events',
    fields: ['object_type', 'object', 'reason'],
    sentence: (f) => `the ${thing(f)} begins anew${because(f)}`,
  },
  'sink.end': {
    severity: 'warning',
    trap: true,
    meaning:
      'a receiver of events is no longer in the configuration; `count` rows of the log had not reached it, all of them if its position was lost',
    fields: ['object_type', 'object', 'count'],
    sentence: (f) =>
      `the ${thing(f)} is no longer in the configuration, ${f.count ?? 0} rows of the audit log had not reached it`,
  },
  'sink.missed': {
    severity: 'warning',
    trap: true,
    meaning:
      'a receiver of events will not get `count` rows: retention had removed them from the log before it was back, or its position was lost and it is unknown which of them it has',
    fields: ['object_type', 'object', 'count', 'reason'],
    sentence: (f) => `the ${thing(f)} missed ${f.count ?? 0} rows of the audit log${because(f)}`,
  },
  'config.reload': {
    severity: 'warning',
    trap: true,
    meaning:
      'the configuration was read again; `changes` names the keys that differ, never their values. `reason` names those that wait for a restart. Receivers that it takes away have this event, too. With the result `failure` the old one stays',
    fields: ['object_type', 'object', 'changes', 'result', 'reason'],
    sentence: (f) =>
      f.result === 'failure'
        ? `the configuration could not be taken over${because(f)}`
        : `the configuration was read again: ${f.changes ?? 'nothing'} changed`,
  },
  'service.start': {
    severity: 'notice',
    trap: false,
    meaning:
      'the broker is ready; `object` is its version, `reason` which backup its data was restored from since the last start; `method` is `takeover` where it replaces another broker, whose sessions may run on',
    fields: ['object_type', 'object', 'reason', 'method'],
    sentence: (f) => `sallyport ${f.object ?? ''} started${because(f)}`,
  },
  'service.stop': {
    severity: 'notice',
    trap: false,
    meaning: 'the broker stops; `method` is `takeover` where another one has replaced it',
    fields: ['object_type', 'object', 'reason', 'method'],
    sentence: (f) => `sallyport ${f.object ?? ''} stops${because(f)}`,
  },
  'worker.lost': {
    severity: 'warning',
    trap: true,
    meaning:
      'a session worker died and is replaced; `object` is its process id, `count` the number of sessions that ended with it',
    fields: ['object_type', 'object', 'reason', 'count'],
    sentence: (f) => `session worker ${f.object ?? '?'} is gone with ${f.count ?? 0} sessions${because(f)}`,
  },
  'worker.loop': {
    severity: 'alert',
    trap: true,
    meaning: 'session workers die again and again within their first minute: `count` in a row',
    fields: ['object_type', 'object', 'reason', 'count'],
    sentence: (f) => `${f.count ?? '?'} session workers in a row died soon after their start${because(f)}`,
  },
  'database.away': {
    severity: 'alert',
    trap: true,
    meaning:
      'the database cannot be used since this moment: running sessions go on for `database.grace`, their events are kept on the disk, and what is new is refused',
    fields: ['object_type', 'object', 'reason'],
    sentence: (f) => `the database cannot be used${because(f)}`,
  },
  'database.back': {
    severity: 'warning',
    trap: true,
    meaning:
      'the database can be used again after `duration`; the `count` events before this one were kept on the disk meanwhile. With the result `failure` some were lost there, and `reason` says which',
    fields: ['object_type', 'object', 'duration', 'count', 'result', 'reason'],
    sentence: (f) =>
      f.result === 'failure'
        ? `events that were kept while the database was away could not be stored${because(f)}`
        : `the database is back after ${Math.round(Number(f.duration ?? 0) / 1000)} s, ${f.count ?? 0} events were kept meanwhile`,
  },
} as const satisfies Record<string, EventKind>
