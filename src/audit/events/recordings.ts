/** Events of stored data: recordings, the audit log itself, backups. */
import { CLIENT, type EventKind, LOCAL, SESSION } from './fields.ts'
import { because, deed, heldBecause, session, who } from './phrases.ts'

export const RECORDINGS = {
  'recording.sealed': {
    severity: 'notice',
    trap: false,
    meaning: 'a recording was closed in order and signed',
    fields: [...SESSION, 'size', 'digest'],
    sentence: (f) => `the recording of ${session(f)} is sealed (${f.size ?? '?'} bytes)`,
  },
  'recording.recovered': {
    severity: 'warning',
    trap: false,
    meaning:
      'a recording that a crash, or a disk error, had left open was sealed as far as it goes; the reason says what is missing, `duration` how much of what had been noted by `recording.progress` is',
    fields: [...SESSION, 'size', 'digest', 'duration', 'reason'],
    sentence: (f) => `the recording of ${session(f)} was sealed at the start${because(f)}`,
  },
  'recording.progress': {
    severity: 'notice',
    trap: false,
    meaning:
      'how far the recordings reach that are being written: `object` has an entry SESSION:BYTES:DIGEST:MILLISECONDS for each that has grown, with a space between; see Proof',
    fields: ['object'],
    sentence: (f) => `recordings that are being written have reached: ${f.object ?? '?'}`,
  },
  'recording.found': {
    severity: 'warning',
    trap: false,
    meaning:
      'at the first start after a restore a recording was found that is signed by this broker, and that the backup was too old to know: its session is known again as far as the recording tells',
    fields: [...SESSION, 'size', 'digest', 'reason'],
    sentence: (f) => `the recording of ${session(f)} was found after a restore${because(f)}`,
  },
  'recording.failed': {
    severity: 'alert',
    trap: true,
    meaning:
      'a recording could not be written, and its session was ended; with the result `lost`: after a crash it is gone, or lacks `duration` of what there had been',
    fields: [...SESSION, 'result', 'reason', 'size', 'digest', 'duration'],
    sentence: (f) =>
      `the recording of ${session(f)} ${f.result === 'lost' ? 'lacks what had been written' : 'could not be written'}${because(f)}`,
  },
  'recording.verify': {
    severity: 'notice',
    trap: false,
    meaning: 'a recording was checked; a warning when its result is `failure`',
    fields: ['session', 'user', ...CLIENT, 'result', 'reason', 'digest', ...LOCAL],
    sentence: (f) => `the recording of ${session(f)} was checked: ${f.result ?? '?'}${because(f)}`,
  },
  'recording.view': {
    severity: 'notice',
    trap: false,
    meaning: 'a recording was opened: replayed, exported or downloaded; `method` is the form',
    fields: ['session', 'user', 'profile', 'api_key', ...CLIENT, 'method', ...LOCAL],
    sentence: (f) => `${who(f)} opened the recording of ${session(f)} as ${f.method ?? '?'}`,
  },
  'recording.search': {
    severity: 'notice',
    trap: false,
    meaning:
      'what happened in sessions was searched; `method` names what: `command`, `file`, `output`. The words are not kept: one may look for a secret',
    fields: ['session', 'user', 'profile', 'api_key', ...CLIENT, 'method', ...LOCAL],
    sentence: (f) =>
      `${who(f)} searched ${f.session === undefined ? 'all sessions' : session(f)} by ${f.method ?? '?'}`,
  },
  'recording.stored': {
    severity: 'notice',
    trap: false,
    meaning:
      'a recording is in the object store, read back and the same; a warning when its result is `failure`: it is not there yet, and is tried again unless the reason says otherwise',
    fields: ['session', 'object', 'size', 'sha256', 'result', 'reason'],
    sentence: (f) =>
      f.result === 'failure'
        ? `the recording of ${session(f)} could not be copied to the object store${because(f)}`
        : `the recording of ${session(f)} is in the object store (${f.size ?? '?'} bytes)`,
  },
  'recording.hold': {
    severity: 'notice',
    trap: false,
    meaning: 'a session was put on legal hold: its recording is kept whatever the retention says',
    fields: ['session', 'user', 'profile', 'api_key', ...CLIENT, 'result', 'reason'],
    sentence: (f) => deed(f, 'put', 'put', `${session(f)} on hold`) + heldBecause(f),
  },
  'recording.release': {
    severity: 'notice',
    trap: false,
    meaning:
      'a session is no longer on legal hold; where that takes two people, `user` is the one who confirmed it and `object` the one who had asked',
    fields: ['session', 'user', 'profile', 'api_key', ...CLIENT, 'object_type', 'object', 'result', 'reason'],
    sentence: (f) => deed(f, 'released', 'release', `${session(f)} from its hold`) + heldBecause(f),
  },
  'recording.release_request': {
    severity: 'warning',
    trap: false,
    meaning:
      'somebody asked for the end of a legal hold, which a second person has to confirm within `duration`',
    fields: ['session', 'user', 'profile', 'api_key', ...CLIENT, 'duration', 'result', 'reason'],
    sentence: (f) => deed(f, 'asked', 'ask', `to release ${session(f)} from its hold`) + heldBecause(f),
  },
  'recording.deleted': {
    severity: 'warning',
    trap: false,
    meaning:
      'the tombstone of a recording: written, and signed, before it is removed. `digest` is what it had; `method` is `age`, `size` or `request`',
    fields: [
      'session',
      'user',
      'profile',
      'api_key',
      ...CLIENT,
      'method',
      'size',
      'digest',
      'result',
      'reason',
    ],
    sentence: (f) =>
      `the recording of ${session(f)} ${f.result === 'failure' ? 'could not be' : 'was'} deleted${f.user === undefined ? '' : ` by ${who(f)}`}${because(f)}`,
  },
  'recording.space': {
    severity: 'warning',
    trap: true,
    meaning:
      'the free space for recordings (`size`, in bytes) has come below `recordings.alarm_free`; written once, until there is room again',
    fields: ['object', 'size', 'reason'],
    sentence: (f) => `${f.size ?? '?'} bytes are free for recordings in ${f.object ?? '?'}${because(f)}`,
  },
  'audit.checkpoint': {
    severity: 'notice',
    trap: false,
    meaning:
      'the audit log up to here is signed; `object` is the number of the row before, `digest` its hash, `signer` the id of the key',
    fields: ['object', 'digest', 'signature', 'signer'],
    sentence: (f) => `the audit log is signed up to row ${f.object ?? '?'}, hash ${f.digest ?? '?'}`,
  },
  'audit.export': {
    severity: 'notice',
    trap: false,
    meaning:
      'the audit log was exported, up to the checkpoint behind this; `object` names the rows of a range',
    fields: ['user', 'profile', 'api_key', ...CLIENT, 'object', ...LOCAL],
    sentence: (f) =>
      `${who(f)} exported ${f.object === undefined ? 'the audit log' : `rows ${f.object} of the audit log`}`,
  },
  'audit.handover': {
    severity: 'warning',
    trap: false,
    meaning:
      'retention removes the rows of the audit log up to `object`, which are `count`; `digest` is the hash of the last of them, `reason` where they were archived. It is signed by `signer`: the log begins behind that row from now on',
    fields: ['object', 'digest', 'count', 'reason', 'signature', 'signer'],
    sentence: (f) =>
      `the audit log begins behind row ${f.object ?? '?'} from now on, ${f.count ?? '?'} rows are removed${because(f)}`,
  },
  'audit.kept': {
    severity: 'notice',
    trap: false,
    meaning:
      'what rows that retention removes said of a recording that is still there: `size` and `digest` that it was closed with, unless it never was, `object` how far it had come, as in `recording.progress`, and `sha256` of its copy in the object store; with the result `lost`, what a crash was used to cut',
    fields: ['session', 'object', 'size', 'digest', 'sha256', 'result', 'reason'],
    sentence: (f) =>
      `the audit log goes on knowing the recording of ${session(f)}, digest ${f.digest ?? 'none'}${f.result === undefined ? '' : ` (${f.result}${because(f)})`}`,
  },
  'backup.begin': {
    severity: 'notice',
    trap: false,
    meaning:
      'a backup is about to be made into the folder `object`; `method` names what is in it, the `master_key` perhaps',
    fields: ['user', 'object', 'method', ...LOCAL],
    sentence: (f) => `${who(f)} makes a backup into ${f.object ?? '?'} (${f.method ?? '?'})`,
  },
  'backup.end': {
    severity: 'notice',
    trap: false,
    meaning:
      'a backup is whole, or, with the result `failure`, was given up; `sha256` is that of its manifest, `digest` the hash of the last row of the audit log in it, `size` the bytes of its files',
    fields: [
      'user',
      'object',
      'method',
      'result',
      'reason',
      'size',
      'sha256',
      'digest',
      'duration',
      ...LOCAL,
    ],
    sentence: (f) => deed(f, 'made', 'make', `the backup ${f.object ?? '?'}`) + heldBecause(f),
  },
  'backup.restore': {
    severity: 'warning',
    trap: false,
    meaning:
      'the data folder was restored from the backup `object`; `digest` is the hash of the row that the audit log went up to, `sha256` that of the manifest; events that came after that row are not in the log any more',
    fields: ['user', 'object', 'method', 'reason', 'sha256', 'digest', ...LOCAL],
    sentence: (f) => `${who(f)} restored the backup ${f.object ?? '?'}${because(f)}`,
  },
  'store.copy': {
    severity: 'warning',
    trap: false,
    meaning:
      'the store was copied from the database `object` to this one, which is used in its place; all rows before this one are the same in both, and `digest` is the hash of the last of them',
    fields: ['user', 'object', 'count', 'digest', ...LOCAL],
    sentence: (f) => `${who(f)} copied the store from ${f.object ?? '?'}`,
  },
  'store.reopen': {
    severity: 'warning',
    trap: false,
    meaning:
      'the store, which was copied to the database `object`, is used again as it was then; what happened in the copy since is not in it, and all cookies, tickets and invitations have ended',
    fields: ['user', 'object', ...LOCAL],
    sentence: (f) => `${who(f)} reopened the store that was copied to ${f.object ?? '?'}`,
  },
} as const satisfies Record<string, EventKind>
