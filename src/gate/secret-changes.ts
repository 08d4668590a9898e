import type { Id } from '../model/objects.ts'

/** Changes of stored secrets, which sessions wait for, and which follow their ends. */
export interface SecretChanges {
  /** Resolves when the account's secret is not being changed any more; false if it still is after some time. */
  settled(accountId: Id): Promise<boolean>
  /** Asks for the change that follows the session or checkout, before its end is stored. */
  onReturn(accountId: Id, cause: 'checkin' | 'session', user: string): Promise<void>
  /** Reports that the change could not be asked for: the session ends all the same. */
  onFault(error: unknown): void
  /** Reports that the end is stored. */
  freed(accountId: Id): Promise<void>
}
