/** One rule for files, as the policies of connections and authorizations have them. */
import type { PathPattern } from './path-pattern.ts'

export interface FileRule {
  /** As it was written. */
  text: string
  action: 'allow' | 'deny'
  direction: FileDirection | 'any'
  pattern: PathPattern
  /** Bytes. */
  size?: { operator: '<=' | '>'; bytes: number }
  /** Lower case, without the dot before them. */
  extensions?: string[]
}

/** `up` is toward the target. */
export type FileDirection = 'up' | 'down'
