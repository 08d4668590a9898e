/** Bounds on an SSH connection: its key exchange, sign-in and answers. */

/** Questions "would this public key do?" on one connection: agents offer many keys. */
export const MAX_KEY_OFFERS = 32
/** Sign-in requests of all kinds on one connection, proofs or not. */
export const MAX_AUTH_REQUESTS = 64
/** Answers to a channel's requests that the client still waits for. */
export const MAX_OWED = 4096
/** A key exchange that takes longer than this ends the connection. */
export const KEX_TIMEOUT_MS = 60_000
/** What one leg's keys are used for, in either direction, before new ones are agreed (RFC 4253 9, RFC 4344 3.1). */
export const REKEY_LIMITS = { bytes: 1024 * 1024 * 1024, packets: 2 ** 31, intervalMs: 3_600_000 }
/** A target's key exchange and sign-in, after the TCP connection. */
export const TARGET_SIGN_IN_TIMEOUT_MS = 30_000
/** Silence after which a leg is asked for a sign of life, and how many questions may stay unanswered. */
export const KEEPALIVE_INTERVAL_MS = 30_000
export const KEEPALIVE_MAX_UNANSWERED = 3
