/** Bounds on the memory, work and waiting that a VNC peer can cause in the relay. */

/** Bytes of inflated data in each direction: the burst, and the rate per second in the long run. */
export const CLIPBOARD_BYTES = 16 * 1024 * 1024
export const CLIPBOARD_BYTES_PER_SECOND = 1024 * 1024
/** Bytes of an extended cut text, in each direction, that are kept in case it is sent again. */
export const CLIPBOARD_REPEATED = 64 * 1024

/** The desktop of the bastion's own screens while there is no target. */
export const OWN_SIZE = { width: 1024, height: 768 }
/** Time for a viewer to read its last screen before the relay. */
export const RELEASE_MS = 10_000

/**
 * Milliseconds of activity that the recording may miss: the time after an update for a viewer to request the
 * next, to block reads from the target, or to hold its fences; and the time after the last key or click for
 * which the target is still read.
 */
export const UNSEEN_MS = 1_000
/**
 * Time without drawing after which the pixel format of a target without fences is changed despite an open
 * request.
 */
export const QUIET_MS = 500
/** Pixels of the smallest desktop that a viewer may request: on a smaller one activity could not be seen. */
export const LEAST_WISH = { width: 320, height: 200 }
