/** The numbers that bound what a VNC peer can make the relay hold, do or wait for. */

/** How long a target may take until it has sent its first picture. */
export const FIRST_UPDATE_MS = 30_000
/** A target that is in the middle of a message has to send that many bytes in that time. */
export const STALL_MS = 60_000
export const STALL_BYTES = 256
/** How often a target is looked at. */
export const STALL_LOOK_MS = 5_000

/** Clipboard texts that are events of their own: so many at once, and so many a second in the long run. */
export const CLIPBOARD_EVENTS = 30
export const CLIPBOARD_EVENTS_PER_SECOND = 1
/** Bytes of data, each way, that are inflated: so many at once, and so many a second in the long run. */
export const CLIPBOARD_BYTES = 16 * 1024 * 1024
export const CLIPBOARD_BYTES_PER_SECOND = 1024 * 1024
/** Bytes of a clipboard's text that the recording keeps. */
export const CLIPBOARD_KEPT = 256 * 1024

/** The desktop on which the bastion shows its own screens while there is no target. */
export const OWN_SIZE = { width: 1024, height: 768 }
/** How long the rest of an update may take until a session ends that was ended in the middle of it. */
export const LAST_UPDATE_MS = 1_000

/** How long a viewer may take to read what it was shown last before the relay. */
export const RELEASE_MS = 10_000
