/** Events of users and their sessions: signing in, actions in a session, and watching it. */
import { CHANNEL, CLIENT, COUNTED, type EventKind, KEY, PLACE, SESSION, TARGET, WATCH } from './fields.ts'
import {
  because,
  channel,
  command,
  copied,
  seconds,
  session,
  targetOf,
  times,
  transfer,
  who,
} from './phrases.ts'

export const SESSIONS = {
  'auth.success': {
    severity: 'notice',
    trap: false,
    meaning: 'a user signed in',
    fields: ['user', 'profile', 'api_key', ...CLIENT, 'protocol', 'method', ...KEY],
    sentence: (f) => `${who(f)} signed in by ${f.method ?? '?'}`,
  },
  'auth.failure': {
    severity: 'warning',
    trap: true,
    meaning: 'a sign-in failed; the reason is for the audit and is never sent to the client',
    fields: ['user', 'api_key', ...CLIENT, 'protocol', 'method', 'reason', ...KEY, ...COUNTED],
    sentence: (f) => `${who(f)} could not sign in by ${f.method ?? '?'}${because(f)}${times(f)}`,
  },
  'auth.locked': {
    severity: 'warning',
    trap: true,
    meaning: 'too many failures: sign-in is held up for the user or the address',
    fields: ['user', ...CLIENT, 'protocol', 'method', 'reason', 'duration', ...KEY],
    sentence: (f) =>
      `sign-in of ${who(f)} is locked${f.duration === undefined ? '' : ` for ${seconds(f.duration)}`}${because(f)}`,
  },
  'auth.unavailable': {
    severity: 'warning',
    trap: false,
    meaning:
      'no server could judge a sign-in, which counts as no failure; `object` names the external authentications, `reason` is what each server did',
    fields: ['user', ...CLIENT, 'protocol', 'method', 'reason', ...KEY, ...COUNTED],
    sentence: (f) =>
      `no server could judge the sign-in of ${who(f)} by ${f.method ?? '?'}${because(f)}${times(f)}`,
  },
  'auth.offline': {
    severity: 'warning',
    trap: false,
    meaning:
      'a user signed in by a password that the external authentication `object` had accepted a while ago, since no server could be reached',
    fields: ['user', ...CLIENT, 'protocol', 'object_type', 'object'],
    sentence: (f) => `${who(f)} signed in offline: ${f.object ?? 'the server'} could not be reached`,
  },
  'ticket.issue': {
    severity: 'notice',
    trap: false,
    meaning:
      'a user was handed a one-time ticket for a target; `object` is the address that the viewer has to come from, `duration` how long it may take; asked for with an API key, `method` is `api_key`',
    fields: [
      'user',
      'api_key',
      ...CLIENT,
      'method',
      'protocol',
      ...PLACE,
      'object_type',
      'object',
      'duration',
    ],
    sentence: (f) => `${who(f)} was handed a ticket for ${targetOf(f)} from ${f.object ?? '?'}`,
  },
  'ticket.denied': {
    severity: 'warning',
    trap: false,
    meaning:
      'a user was refused a one-time ticket; `object` is the target that was asked for, the rest as there',
    fields: [
      'user',
      'api_key',
      ...CLIENT,
      'method',
      'protocol',
      'authorization',
      'object_type',
      'object',
      'reason',
      ...COUNTED,
    ],
    sentence: (f) => `${who(f)} was refused a ticket for ${f.object ?? '?'}${because(f)}${times(f)}`,
  },
  'ticket.withdraw': {
    severity: 'notice',
    trap: false,
    meaning:
      'a one-time ticket was revoked before its use, because its basis was removed (the user, the sign-in method, the key or the right); `object` is the address that the viewer had to come from',
    fields: ['user', 'api_key', 'protocol', ...PLACE, 'object_type', 'object', 'reason'],
    sentence: (f) => `the ticket of ${who(f)} for ${targetOf(f)} was taken back${because(f)}`,
  },
  'auth.sign_out': {
    severity: 'notice',
    trap: false,
    meaning: 'a user has ended `count` of their own sign-ins by cookie, one or all',
    fields: ['user', 'profile', 'api_key', ...CLIENT, 'count'],
    sentence: (f) => `${who(f)} ended ${f.count ?? 0} sign-ins`,
  },
  'auth.withdraw': {
    severity: 'notice',
    trap: false,
    meaning:
      'a user was signed out, because the basis of the sign-in was removed (the user, the method, the key or the right); the ends of running sessions are `session.kill`',
    fields: ['user', 'api_key', ...CLIENT, 'protocol', 'reason'],
    sentence: (f) => `${who(f)} was signed out${because(f)}`,
  },
  'session.open': {
    severity: 'notice',
    trap: true,
    meaning:
      'a session to a target began; `method`, where no stored account was used: `mapping` or `interactive`; with a certificate of its own to sign in by, `object` is its serial number and `object_type` is `certificate`; `approval` is the id of the approval that it needed, `reason` and `ticket` the reason that the user gave, and `critical` is `true` if an authorization says so',
    fields: [
      ...SESSION,
      'authorization',
      'method',
      'object_type',
      'object',
      'reason',
      'ticket',
      'approval',
      'critical',
    ],
    sentence: (f) =>
      `${who(f)} opened ${f.critical === undefined ? '' : 'critical '}${session(f)} to ${targetOf(f)}${because(f)}`,
  },
  'session.close': {
    severity: 'notice',
    trap: true,
    meaning: 'a session ended; a warning when its result is `failure`',
    fields: [...SESSION, 'subprotocol', 'result', 'reason', 'duration', 'bytes_in', 'bytes_out'],
    sentence: (f) =>
      `${session(f)} of ${who(f)} to ${targetOf(f)} ended${f.duration === undefined ? '' : ` after ${seconds(f.duration)}`}${because(f)}`,
  },
  'session.denied': {
    severity: 'warning',
    trap: true,
    meaning: 'a session was refused',
    fields: [...SESSION, 'reason', ...COUNTED],
    sentence: (f) => `${who(f)} was refused ${targetOf(f)}${because(f)}${times(f)}`,
  },
  'session.kill': {
    severity: 'warning',
    trap: true,
    meaning: 'a user, or a rule, stopped a running session; `user` is the user that stopped it',
    fields: ['session', 'user', 'api_key', 'protocol', ...TARGET, 'reason'],
    sentence: (f) =>
      `${session(f)} to ${targetOf(f)} was ended${f.user === undefined ? '' : ` by ${who(f)}`}${because(f)}`,
  },
  'session.suspend': {
    severity: 'warning',
    trap: false,
    meaning:
      "the input of a running session's client was suspended: `user` is the user that did it, absent where the session has to be watched and nobody watches",
    fields: ['session', 'user', 'api_key', 'protocol', ...TARGET, 'reason'],
    sentence: (f) =>
      `input of ${session(f)} to ${targetOf(f)} was suspended${f.user === undefined ? '' : ` by ${who(f)}`}${because(f)}`,
  },
  'session.resume': {
    severity: 'notice',
    trap: false,
    meaning:
      "the input of a running session's client is accepted again, unless it is suspended for another reason",
    fields: ['session', 'user', 'api_key', 'protocol', ...TARGET, 'reason'],
    sentence: (f) =>
      `input of ${session(f)} to ${targetOf(f)} was resumed${f.user === undefined ? '' : ` by ${who(f)}`}${because(f)}`,
  },
  'session.redirect': {
    severity: 'notice',
    trap: false,
    meaning:
      'a target sent a running session on to another host, which is `destination` (RDP); a warning when its result is `refused`, or `failure`: it was not reached',
    fields: [...SESSION, 'destination', 'result', 'reason'],
    sentence: (f) =>
      `${targetOf(f)} ${f.result === 'success' ? 'sent' : 'could not send'} ${session(f)} of ${who(f)} on to ${f.destination ?? '?'}${because(f)}`,
  },
  'session.kerberos': {
    severity: 'notice',
    trap: false,
    meaning:
      'the broker asked the KDCs of the domain for a ticket by which a session signs in at its target (RDP); `object` is the service of the ticket, `destination` the KDC that issued it, `reason` what the other KDCs did; a warning when its result is `failure`, and `reason` then begins with a stable word',
    fields: [...SESSION, 'object_type', 'object', 'destination', 'result', 'reason'],
    sentence: (f) =>
      f.result === 'success'
        ? `${f.destination ?? 'a KDC'} issued a ticket for ${f.object ?? '?'} to ${session(f)} of ${who(f)}${because(f)}`
        : `${session(f)} of ${who(f)} could not get a ticket for ${f.object ?? '?'}${because(f)}`,
  },
  'session.fallback': {
    severity: 'warning',
    trap: false,
    meaning:
      'a session signs in at its target by NTLM although the domain of its account has Kerberos, because that did not work; the connection policy allows it (RDP)',
    fields: [...SESSION, 'reason'],
    sentence: (f) =>
      `${session(f)} of ${who(f)} signs in at ${targetOf(f)} by NTLM instead of Kerberos${because(f)}`,
  },
  'channel.open': {
    severity: 'notice',
    trap: false,
    meaning:
      'a shell, a command, a file transfer, a desktop, what goes beside it (a drive, a printer, sound), a forwarded connection or its listener on the target began within a session',
    fields: [...CHANNEL, 'destination'],
    sentence: (f) => `${who(f)} opened ${channel(f)} on ${targetOf(f)}`,
  },
  'channel.denied': {
    severity: 'warning',
    trap: false,
    meaning: 'something within a session was refused: the right is missing, or the broker does not relay it',
    fields: [...CHANNEL, 'reason', 'destination', ...COUNTED],
    sentence: (f) => `${who(f)} was refused ${channel(f)} on ${targetOf(f)}${because(f)}${times(f)}`,
  },
  'channel.unrecorded': {
    severity: 'warning',
    trap: false,
    meaning:
      'a stream passed the recording quota: it goes on, recorded by its count only, and its hash if the policy keeps that, and this is written again at its end with size and sha256. Without a direction: the disk is full, and the whole session goes on without a recording, as its connection policy says',
    fields: [...CHANNEL, 'direction', 'size', 'sha256', 'reason'],
    sentence: (f) =>
      f.direction === undefined
        ? `${session(f)} is not recorded any more${because(f)}`
        : `${f.subprotocol ?? 'a channel'} of ${session(f)} is recorded by hash and count only${f.size === undefined ? '' : ` (${f.size} bytes)`}${because(f)}`,
  },
  command: {
    severity: 'notice',
    trap: false,
    meaning:
      'a command line; `object` is the line as it was typed, secrets on it included. A warning when it met a `rule`; `denied`: it did not reach the target. Without `object`: with the confidence `unread` a line was typed that could not be read, and `reason` says why; otherwise `reason` says what is left out',
    fields: [...CHANNEL, 'object', 'confidence', 'rule', 'result', 'reason'],
    sentence: command,
  },
  'file.transfer': {
    severity: 'notice',
    trap: false,
    meaning: 'a file went to the target (`up`) or came from it (`down`)',
    fields: [...CHANNEL, 'path', 'direction', 'size', 'sha256', 'result', 'reason'],
    sentence: transfer,
  },
  'file.denied': {
    severity: 'warning',
    trap: false,
    meaning: 'an operation on a file was refused',
    fields: [...CHANNEL, 'path', 'direction', 'reason', ...COUNTED],
    sentence: (f) => `${who(f)} was refused ${f.path ?? 'a file'} on ${targetOf(f)}${because(f)}${times(f)}`,
  },
  'file.failed': {
    severity: 'notice',
    trap: false,
    meaning:
      "the target refused an operation on a file, or SFTP or SCP as a whole; `reason` has the operation and the target's words. A transfer that it breaks off is `file.transfer`",
    fields: [...CHANNEL, 'path', 'direction', 'reason', ...COUNTED],
    sentence: (f) =>
      `${targetOf(f)} refused ${who(f)} ${f.path ?? 'the transfer of files'}${because(f)}${times(f)}`,
  },
  clipboard: {
    severity: 'notice',
    trap: false,
    meaning:
      'something was copied from one side of a desktop to the other: to the target (`up`) or from it (`down`); of a text the recording has its beginning',
    fields: [...CHANNEL, 'direction', 'size', 'sha256', 'format', 'reason'],
    sentence: copied,
  },
  'hostkey.new': {
    severity: 'notice',
    trap: false,
    meaning:
      "a target's host key was seen for the first time, or nothing vouches for it; `result` says whether it was pinned or refused, `reason` why",
    fields: [...SESSION, 'method', 'digest', 'result', 'reason'],
    sentence: (f) => `${targetOf(f)} showed a new host key ${f.digest ?? '?'}: ${f.result ?? '?'}`,
  },
  'hostkey.changed': {
    severity: 'alert',
    trap: true,
    meaning:
      "a target's host key is not the pinned one, or what vouches for it says otherwise (`reason`): the connection was ended",
    fields: [...SESSION, 'method', 'digest', 'reason'],
    sentence: (f) =>
      f.reason === undefined
        ? `the host key of ${targetOf(f)} has changed to ${f.digest ?? '?'}: the connection was ended`
        : `the host key ${f.digest ?? '?'} of ${targetOf(f)} was refused, ${f.reason}: the connection was ended`,
  },
  'watch.begin': {
    severity: 'notice',
    trap: false,
    meaning: 'a user began to watch a running session; `object` is its user',
    fields: WATCH,
    sentence: (f) => `${who(f)} watches ${session(f)} of ${f.object ?? '?'}`,
  },
  'watch.end': {
    severity: 'notice',
    trap: false,
    meaning:
      'a user no longer watches a session; the reason names the user or the cause that ended it, unless the watcher did',
    fields: [...WATCH, 'duration', 'reason'],
    sentence: (f) =>
      `${who(f)} no longer watches ${session(f)} of ${f.object ?? '?'}${f.duration === undefined ? '' : ` after ${seconds(f.duration)}`}${because(f)}`,
  },
} as const satisfies Record<string, EventKind>
