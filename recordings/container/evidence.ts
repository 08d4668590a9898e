/**
 * Evidence from the audit log about a recording. Together with the file it separates a replaced, cut or
 * missing recording from a deleted one.
 */
export interface SessionEvidence {
  /** Size and digest of the sealed or recovered file, or of the file closed after a failure. */
  closed?: { size: number; digest: string }
  /** The farthest noted checkpoint: the file must always begin with these bytes. */
  noted?: Noted
  /** Reason, if the start after a crash found less than had been written, or nothing. */
  lost?: string
  /**
   * Set if the session has ended. If neither this nor `closed` is set, the recording is being written or
   * waits for recovery.
   */
  ended?: boolean
  /** SHA-256 of the file as read back from the object store, in hex. */
  stored?: string
  /** Reason for the deletion, in one sentence: the recording's tombstone. */
  deleted?: string
}

/** A recording at the end of one of its checkpoints. */
export interface Noted {
  /** Length of the file in bytes. */
  size: number
  /** The chain's head there, in hex. */
  digest: string
  /** Duration of the recording up to there. */
  milliseconds: number
}

/** Returns whether the recording must exist according to the audit log. */
export function isDue(evidence: SessionEvidence | undefined): boolean {
  if (evidence === undefined || evidence.deleted !== undefined) return false
  return evidence.closed !== undefined || evidence.noted !== undefined || evidence.lost !== undefined
}

/** Returns whether the audit log has no event for the recording's end. */
export function mayBeOpen(evidence: SessionEvidence | undefined): boolean {
  return evidence !== undefined && evidence.closed === undefined && evidence.ended !== true
}
