/** What every resource of one API instance shares. */
import type { Id } from '../../model/objects.ts'
import type { ApiDeps } from '../http/deps.ts'
import type { Turns } from '../http/turns.ts'
import type { WebSockets } from '../http/websockets.ts'
import type { LongAnswers } from './answers.ts'
import type { SignIns } from './sign-ins.ts'
import type { WatchingSocket } from './watching.ts'

/** What resources stand on, also without a server: the import and export of the command line. */
export interface ResourceContext {
  deps: Pick<ApiDeps, 'store' | 'passwords' | 'clock'> & {
    vault: Pick<ApiDeps['vault'], 'setCredentials' | 'setAuthority' | 'seal' | 'on'>
  }
}

export interface Context extends ResourceContext {
  deps: ApiDeps
  signIns: SignIns
  /** When a key's use by somebody was last written to the audit. */
  keyUses: Map<string, number>
  /** Changes of one object wait for one another. */
  turns: Turns
  webSockets: WebSockets
  /** Those who watch sessions. */
  watchers: Set<WatchingSocket>
  answers: LongAnswers
}

/** An object as the API shows it begins with these. */
export interface Shown {
  id: Id
  url: string
}
