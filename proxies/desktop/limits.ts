/** Bounds on a session with a desktop. */

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
