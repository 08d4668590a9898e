/** The numbers that bound what a peer that shows a terminal can make the proxy hold or wait for. */

/** A peer that vanishes is noticed by TCP, from here on within ten seconds: nothing in these protocols asks for an answer. */
export const KEEPALIVE_MS = 30_000
/** Bytes waiting in a socket from which on the other side is not read any more. */
export const SEND_HIGH_WATER = 256 * 1024
/** Bytes waiting to be sent to a client from which on that client itself is not read any more. */
export const FLOOD_MARK = 1024 * 1024
/** How long a closing connection may take to drain its last words. */
export const LINGER_MS = 5_000
