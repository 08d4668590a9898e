/** What the audit log knows of a recording: beside the file it tells a replaced, cut or missing one from a deleted one. */
export interface SessionEvidence {
  /** What was sealed, recovered, or closed after a failure. */
  closed?: { size: number; digest: string }
  /** How far it reached while it was written: the file begins with these bytes for ever. */
  noted?: Noted
  /** The start after a crash found less than there had been, or nothing. */
  lost?: string
  /** The session is over. Without it and without `closed` the recording is being written, or waits for its recovery. */
  ended?: boolean
  /** SHA-256 of the file that was read back from the object store, in hex. */
  stored?: string
  /** Why the recording is not there any more, in a sentence: its tombstone. */
  deleted?: string
}

/** A recording at the end of one of its checkpoints. */
export interface Noted {
  /** Bytes of the file. */
  size: number
  /** The chain's head there, in hex. */
  digest: string
  /** How long the recording was then. */
  milliseconds: number
}

/** Whether the audit log says that there has to be a recording. */
export function isDue(evidence: SessionEvidence | undefined): boolean {
  if (evidence === undefined || evidence.deleted !== undefined) return false
  return evidence.closed !== undefined || evidence.noted !== undefined || evidence.lost !== undefined
}

/** Whether the audit log has not heard of the recording's end. */
export function mayBeOpen(evidence: SessionEvidence | undefined): boolean {
  return evidence !== undefined && evidence.closed === undefined && evidence.ended !== true
}
