/** Bounds on the bastion's own screens on a desktop. */

/** How long the notice of recording is shown unless the user presses a key. */
export const NOTICE_SECONDS = 3
/** How long these screens stay without input. */
export const OWN_SCREENS_MS = 600_000
