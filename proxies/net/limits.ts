/** Bounds on a connection of any protocol. */

/** Bytes waiting in a socket's write buffer from which on the other side is not read any more. */
export const SEND_HIGH_WATER = 256 * 1024
/** Bytes waiting to be sent to a peer from which on that peer itself is not read any more. */
export const FLOOD_MARK = 1024 * 1024
/** A peer that vanishes is noticed by TCP, from here on within ten seconds, where its protocol asks for no answer. */
export const KEEPALIVE_MS = 30_000
/** How long a client whose session was ended here has to read why and leave. */
export const DISCONNECT_MS = 1_000
/** How long a closing connection may take to drain its last messages. */
export const LINGER_MS = 5_000
