/** The numbers that bound what the bastion's own screens on a desktop wait for. */

/** How long the notice that a session is recorded is shown, where nobody presses a key. */
export const NOTICE_SECONDS = 3
/** Logins at the target that are refused, each shown to it once, before the user is. */
export const MAX_LOGON_REFUSALS = 3
/** How long these screens stay where nobody touches a key or the pointer. */
export const OWN_SCREENS_MS = 600_000
