/** How a leg is ended whose peer still has to read why. */

import type { Leg } from './leg.ts'
import { FAREWELL_MS, LINGER_MS } from './limits.ts'

/**
 * Leaves the ending to the peer, which was told the reason and that its channels are closed: a client that finds
 * a disconnect message behind them in what it has read drops the reason unread (OpenSSH does). After FAREWELL_MS
 * it is disconnected, after LINGER_MS more its socket is closed.
 */
export function farewell(leg: Leg): void {
  setTimeout(() => end(leg), FAREWELL_MS).unref()
}

/** Disconnects at once; after LINGER_MS the socket is closed whatever the peer does. */
export function end(leg: Leg): void {
  leg.end()
  setTimeout(() => leg.destroy(), LINGER_MS).unref()
}
