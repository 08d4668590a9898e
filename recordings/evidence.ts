/** What the audit log knows of a recording: beside the file it tells a replaced or missing one from a deleted one. */
export interface SessionEvidence {
  /** What was sealed, recovered, or closed after a failure. */
  closed?: { size: number; digest: string }
  /** SHA-256 of the file that was read back from the object store, in hex. */
  stored?: string
  /** Why the recording is not there any more, in a sentence: its tombstone. */
  deleted?: string
}

/** Whether the audit log says that there has to be a recording. */
export function isDue(evidence: SessionEvidence | undefined): boolean {
  return evidence?.closed !== undefined && evidence.deleted === undefined
}
