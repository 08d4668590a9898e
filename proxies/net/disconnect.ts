/** Ends a connection whose peer still has to read the reason. */
import { DISCONNECT_MS, LINGER_MS } from './limits.ts'

export interface Disconnectable {
  /** Sends the queued bytes and closes. */
  close(): void
  destroy(): void
}

/**
 * Waits for the peer to close after it has received the reason and the ends of its channels: OpenSSH drops a
 * reason unread if a disconnect message stands behind it in the same read. Disconnects the peer after
 * DISCONNECT_MS, and closes its socket LINGER_MS later.
 */
export function disconnect(peer: Disconnectable): void {
  setTimeout(() => end(peer), DISCONNECT_MS).unref()
}

/** Disconnects at once; closes the socket after LINGER_MS, whatever the peer does. */
export function end(peer: Disconnectable): void {
  peer.close()
  setTimeout(() => peer.destroy(), LINGER_MS).unref()
}
