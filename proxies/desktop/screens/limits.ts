/** Bounds on the bastion's own screens on a desktop. */

/** How long the notice of recording is shown unless the user presses a key. */
export const NOTICE_SECONDS = 3
/** Logins refused by the target, each shown to the user, before the user is refused. */
export const MAX_LOGON_REFUSALS = 3
/** How long these screens stay without input. */
export const OWN_SCREENS_MS = 600_000
