/** What every resource of one API instance shares. */
import type { Id } from '../model/objects.ts'
import type { ApiDeps } from './deps.ts'
import type { SignIns } from './signins.ts'

export interface Context {
  deps: ApiDeps
  signIns: SignIns
  /** When a key's use by somebody was last written to the audit. */
  keyUses: Map<string, number>
}

/** An object as the API shows it begins with these. */
export interface Shown {
  id: Id
  url: string
}
