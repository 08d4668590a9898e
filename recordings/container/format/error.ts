/** Faults of a recording. The codes are stable: scripts match on them. */
export const FAULTS = {
  not_a_recording: 'the file does not begin like a recording',
  unsupported_version: 'the format is newer than this program',
  bad_header: 'the header cannot be read',
  damaged_header: 'bytes of the file header or of a record header were changed',
  damaged_record: "a record's bytes were changed, or the record comes from another recording",
  missing_records: 'records were removed',
  misplaced_record: 'records were swapped or repeated',
  cut_tail: 'the file ends in the middle of a record',
  not_closed: 'the file ends without a closing record: still running, cut, or not recovered yet',
  trailing_data: 'bytes follow the closing record',
  bad_signature: 'a checkpoint was not signed by the key that the header names',
  unknown_signer: 'the recording is signed by a key that is not trusted',
  wrong_session: 'the recording is of another session',
  replaced_file: 'the recording is not the one that was sealed',
  lost_tail: 'the recording ends before what the audit log has noted of it, or a crash was used to cut it',
  missing_session: 'the audit log knows a recording that is not there, and no tombstone of it',
  not_fetched: 'the recording lies in the object store only, and cannot be fetched from there',
  wrong_key: 'the key does not open this recording',
  bad_group: 'a group opened, but its frames are malformed',
  bad_key_file: 'the wrapped key cannot be read',
} as const
export type Fault = keyof typeof FAULTS

/** The only error that reading and verifying throw about a recording's content. */
export class RecordingError extends Error {
  readonly code: Fault
  /** Byte offset in the file. Absent if the fault has no place. */
  readonly offset: number | undefined

  constructor(code: Fault, message: string, offset?: number) {
    super(message)
    this.name = 'RecordingError'
    this.code = code
    this.offset = offset
  }
}
