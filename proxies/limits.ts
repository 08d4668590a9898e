/** The numbers that bound what any peer, and any session, can make a proxy hold, do or wait for. */

/** Bytes waiting in a socket's write buffer from which on the other side is not read any more. */
export const SEND_HIGH_WATER = 256 * 1024
/** Bytes waiting to be sent to a peer from which on that peer itself is not read any more. */
export const FLOOD_MARK = 1024 * 1024
/** A peer that vanishes is noticed by TCP, from here on within ten seconds, where its protocol asks for no answer. */
export const KEEPALIVE_MS = 30_000
/** How long a client whose session was ended here has to read why and leave. */
export const FAREWELL_MS = 1_000
/** How long a closing connection may take to drain its last messages. */
export const LINGER_MS = 5_000
/** Sign-in attempts on one connection before it is closed: what the gate is asked. */
export const MAX_AUTH_TRIES = 6
/** Refusals in one session, each an event in the audit log, before it is ended. */
export const MAX_DENIALS = 1_000
/** Seconds before a time limit at which the user is told; a quarter of shorter limits. */
export const TIME_LIMIT_WARNING_S = 60
/** Events of one session that wait for the audit log; above that its peers are not read. */
export const MAX_PENDING_EVENTS = 64
/** How long the end of a recording may take, for a disk that hangs. */
export const RECORDING_CLOSE_MS = 30_000
/** Attempts to account for a session at its end, and the pause between them. */
export const CLOSE_ATTEMPTS = 5
export const CLOSE_RETRY_MS = 1_000
/** Sessions that are still being opened and have notices. */
export const MAX_EARLY_NOTICES = 1_000
/** Bytes that wait for the disk in a strictly recorded session; above that its target is not read. */
export const STRICT_HELD = 1024 * 1024
/**
 * Bytes of a session's recording beside its streams: operations on files, command lines, denials. Above that the
 * session ends.
 */
export const MAX_RECORDED_FACTS = 256 * 1024 * 1024
/** How long the target of a desktop may take until it has sent its first picture. */
export const FIRST_UPDATE_MS = 30_000
/** A target that is in the middle of a message has to send that many bytes in that time. */
export const STALL_MS = 60_000
export const STALL_BYTES = 256
/** How often a target is looked at. */
export const STALL_LOOK_MS = 5_000
/** Clipboard texts that are events of their own: so many at once, and so many a second in the long run. */
export const CLIPBOARD_EVENTS = 30
export const CLIPBOARD_EVENTS_PER_SECOND = 1
/** Bytes of a clipboard's text that the recording keeps. */
export const CLIPBOARD_KEPT = 256 * 1024
/** How long the rest of an update may take until a session ends that was ended in the middle of it. */
export const LAST_UPDATE_MS = 1_000
