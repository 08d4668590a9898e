/**
 * Sessions that run on in an older broker, which this one has replaced. They count where sessions are counted;
 * what is done to them is asked of that broker.
 */
import type { Id } from '../model/objects.ts'

export interface ElsewhereSession {
  id: Id
  userId: Id
  accountId?: Id
  /** Asks the session's broker to end it. Resolves with false if it does not run there any more. */
  kill(reason: string, by: string, apiKey?: string): Promise<boolean>
}
