/** A receiver of notifications, as its sink (sink.ts) uses it. */
import type { StoredEvent } from '../audit/chain.ts'

export interface NotificationSender {
  /** Events that one delivery has at most. */
  readonly most: number
  /**
   * Resolves when the receiver has taken the events. Rejects with `DeliveryRefused` if it answered that it does not take
   * them, and with any other error if they may be taken later. Errors have no text of the receiver.
   */
  send(events: readonly StoredEvent[], signal: AbortSignal): Promise<void>
  /** Connects as `send` does, and signs in where that needs it. Sends nothing. Rejects if that fails. */
  reach(signal: AbortSignal): Promise<void>
}

/** An answer of the receiver: it does not take this. */
export class DeliveryRefused extends Error {}
