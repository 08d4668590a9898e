import type { FileDirection } from '../../../src/model/file-rule.ts'

/** A refused request about a file, for the audit log and the recording. */
export interface FileDenial {
  /** The requested operation, such as `rename`. */
  operation: string
  path: string
  direction?: FileDirection
  reason: string
}
