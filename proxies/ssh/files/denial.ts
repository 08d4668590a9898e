import type { FileDirection } from '../../../src/model/file-rule.ts'

/** A request about a file that was refused, for the audit log and the recording. */
export interface FileDenial {
  /** What was asked for, such as `rename`. */
  operation: string
  path: string
  direction?: FileDirection
  reason: string
}
