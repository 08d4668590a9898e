/** Bounds on a session of any protocol, and on the sign-in before it. */

/** Sign-in attempts at the gate on one connection before it is closed. */
export const MAX_AUTH_TRIES = 6
/** Refused logins at targets, typed on one connection, before the connection is closed. */
export const MAX_LOGON_REFUSALS = 3
/** Refusals in one session, each an event in the audit log, before it is ended. */
export const MAX_DENIALS = 1_000
/** Milliseconds for which a client may wait until its session is released; the gate ends the session before. */
export const HELD_MS = 86_400_000
/** Seconds of warning before a time limit; for shorter limits, a quarter of the limit. */
export const TIME_LIMIT_WARNING_S = 60
/** Events of one session that may wait for the audit log; above that, its peers are not read. */
export const MAX_PENDING_EVENTS = 64
/** Time for closing a recording, in case the disk hangs. */
export const RECORDING_CLOSE_MS = 30_000
/** Attempts to report the end of a session, and the pause between them. */
export const CLOSE_ATTEMPTS = 5
export const CLOSE_RETRY_MS = 1_000
/** Sessions not begun yet whose notices are kept. */
export const MAX_EARLY_NOTICES = 1_000
/** Bytes that may wait for the disk in a strictly recorded session; above that, its target is not read. */
export const STRICT_HELD = 1024 * 1024
/**
 * Bytes of a session's recording beside its streams: file operations, command lines, denials. Above that the
 * session ends.
 */
export const MAX_RECORDED_FACTS = 256 * 1024 * 1024
