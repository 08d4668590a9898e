/**
 * Sessions that run on in an older broker, which this one has replaced. They count where sessions are counted;
 * what is done to them is asked of that broker.
 */
import type { Id } from '../model/objects.ts'
import type { Hold, OrderedBy } from './holds.ts'

export type ReleaseAnswer = 'released' | 'not_suspended' | 'not_running'

export interface ElsewhereSession {
  id: Id
  userId: Id
  accountId?: Id
  /** Present while input is held there. */
  hold?: Hold | undefined
  /** Asks the session's broker to end it. Resolves with false if it does not run there any more. */
  kill(reason: string, by: string, apiKey?: string): Promise<boolean>
  /** Asks the session's broker to hold its input. Resolves with false if it does not run there any more. */
  suspend(reason: string, by: OrderedBy): Promise<boolean>
  release(by: OrderedBy): Promise<ReleaseAnswer>
}
