/** Bounds on a connection of any protocol. */

/** Bytes in a socket's write buffer above which the other side is no longer read. */
export const SEND_HIGH_WATER = 256 * 1024
/** Bytes that wait for a peer above which that peer itself is no longer read. */
export const FLOOD_MARK = 1024 * 1024
/**
 * Idle time before TCP probes a peer, whose loss is then noticed within ten seconds. For protocols without a
 * keepalive.
 */
export const KEEPALIVE_MS = 30_000
/** Time for a client to read why its session was ended, and to leave. */
export const DISCONNECT_MS = 1_000
/** Time for a closing connection to drain its last messages. */
export const LINGER_MS = 5_000
