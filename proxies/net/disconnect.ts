/** How a connection is ended whose peer still has to read why. */
import { DISCONNECT_MS, LINGER_MS } from './limits.ts'

export interface Disconnectable {
  /** Sends what is queued, and closes. */
  close(): void
  destroy(): void
}

/**
 * Leaves the ending to the peer, which was told the reason and that its channels are closed: a client that finds
 * a disconnect message behind them in what it has read drops the reason unread (OpenSSH does). After FAREWELL_MS
 * it is disconnected, after LINGER_MS more its socket is closed.
 */
export function disconnect(peer: Disconnectable): void {
  setTimeout(() => end(peer), DISCONNECT_MS).unref()
}

/** Disconnects at once; after LINGER_MS the socket is closed whatever the peer does. */
export function end(peer: Disconnectable): void {
  peer.close()
  setTimeout(() => peer.destroy(), LINGER_MS).unref()
}
