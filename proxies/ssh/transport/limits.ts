/** Limits of an SSH connection: its key exchange, sign-in and replies. */

/** Queries of public keys without a signature on one connection: agents offer many keys. */
export const MAX_KEY_OFFERS = 32
/** Sign-in requests of all kinds on one connection. */
export const MAX_AUTH_REQUESTS = 64
/** Pending replies to a channel's requests. */
export const MAX_OWED = 4096
/** The largest packet_length of a message that means anything: RFC 4253 6.1, as ssh2 has it. */
export const MAX_PACKET = 35_000
/**
 * The largest packet_length of all. OpenSSH's server hides that a terminal does not echo by an SSH_MSG_IGNORE as long as
 * what was typed, up to the 64 KiB that a terminal takes at once.
 */
export const MAX_IGNORED_PACKET = 80_000
/** Longest key exchange; then the connection is closed. */
export const KEX_TIMEOUT_MS = 60_000
/** Use of one leg's keys, in either direction, before a rekey (RFC 4253 9, RFC 4344 3.1). */
export const REKEY_LIMITS = { bytes: 1024 * 1024 * 1024, packets: 2 ** 31, intervalMs: 3_600_000 }
/** Time for a target's key exchange and sign-in, after the TCP connection. */
export const TARGET_SIGN_IN_TIMEOUT_MS = 30_000
/** Silence before a keepalive is sent, and the number of keepalives without a reply. */
export const KEEPALIVE_INTERVAL_MS = 30_000
export const KEEPALIVE_MAX_UNANSWERED = 3
