import type { FileDirection } from '../../../src/model/file-rule.ts'

/** A request about a file that the bastion or the target has refused, for the audit log. */
export interface FileDenial {
  /** The requested operation, such as `rename`. */
  operation: string
  path: string
  direction?: FileDirection
  reason: string
}
