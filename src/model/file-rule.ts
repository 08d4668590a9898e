/** One rule for files, as in the policies of connections and authorizations. */
import type { PathPattern } from './path-pattern.ts'

export interface FileRule {
  /** The rule as written. */
  text: string
  action: 'allow' | 'deny'
  direction: FileDirection | 'any'
  pattern: PathPattern
  /** Bytes. */
  size?: { operator: '<=' | '>'; bytes: number }
  /** Lower case, without the leading dot. */
  extensions?: string[]
}

/** `up` is towards the target. */
export type FileDirection = 'up' | 'down'
