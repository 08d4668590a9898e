/** The numbers that bound what a VNC peer can make the relay hold, do or wait for. */

/** Bytes of data, each way, that are inflated: so many at once, and so many a second in the long run. */
export const CLIPBOARD_BYTES = 16 * 1024 * 1024
export const CLIPBOARD_BYTES_PER_SECOND = 1024 * 1024
/** Bytes of an extended cut text, each way, that are kept in case it is sent again. */
export const CLIPBOARD_REPEATED = 64 * 1024

/** The desktop on which the bastion shows its own screens while there is no target. */
export const OWN_SIZE = { width: 1024, height: 768 }
/** How long a viewer may take to read what it was shown last before the relay. */
export const RELEASE_MS = 10_000

/**
 * Milliseconds of what is done on a desktop that the recording may not have seen yet: so long after an update a viewer may
 * take to ask for the next, keep the target from being read, or keep its fences; and so long after the last key or click
 * the target is still listened to.
 */
export const UNSEEN_MS = 1_000
/** How long a target that knows no fences has had nothing to draw, when its pixel format is changed with a request open. */
export const QUIET_MS = 500
/** Pixels of the least desktop that a viewer may wish for: on a smaller one nothing would be seen of what is done. */
export const LEAST_WISH = { width: 320, height: 200 }
