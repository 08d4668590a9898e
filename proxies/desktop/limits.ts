/** Bounds on a session with a desktop. */

/** Time for the target of a desktop to send its first picture. */
export const FIRST_UPDATE_MS = 30_000
/** A target in the middle of a message has to send that many bytes in that time. */
export const STALL_MS = 60_000
export const STALL_BYTES = 256
/** The interval at which a target is checked. */
export const STALL_LOOK_MS = 5_000
/** Clipboard texts that get events of their own: the burst, and the rate per second in the long run. */
export const CLIPBOARD_EVENTS = 30
export const CLIPBOARD_EVENTS_PER_SECOND = 1
/** Bytes of a clipboard's text that the recording keeps. */
export const CLIPBOARD_KEPT = 256 * 1024
/** Time for the rest of an update when a session is stopped in the middle of it. */
export const LAST_UPDATE_MS = 1_000
