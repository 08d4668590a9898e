/** Objects that all resources of one API instance share. */
import type { Id } from '../../model/objects.ts'
import type { ApiDeps } from '../http/deps.ts'
import type { Turns } from '../http/turns.ts'
import type { WebSockets } from '../http/websockets.ts'
import type { LongAnswers } from './answers.ts'
import type { SignIns } from './sign-ins.ts'
import type { WatchingSocket } from './watching.ts'

/** Dependencies of resources that exist without a server too: for import and export on the command line. */
export interface ResourceContext {
  deps: Pick<ApiDeps, 'store' | 'passwords' | 'clock'> & {
    vault: Pick<ApiDeps['vault'], 'setCredentials' | 'setAuthority' | 'seal' | 'on'>
  }
}

export interface Context extends ResourceContext {
  deps: ApiDeps
  signIns: SignIns
  /** Times of the last audited use, by key, user and address. */
  keyUses: Map<string, number>
  /** Serializes the changes of each object. */
  turns: Turns
  webSockets: WebSockets
  /** Connections that watch sessions. */
  watchers: Set<WatchingSocket>
  answers: LongAnswers
}

/** First fields of every object that the API shows. */
export interface Shown {
  id: Id
  url: string
}
