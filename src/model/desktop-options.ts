/** What connection policies say of desktops, whatever the protocol that shows them. */

export interface DesktopOptions {
  /** Nothing that the user does reaches the target. */
  viewOnly: boolean
  /** The recording has that keys were pressed, and not which. */
  maskKeys: boolean
  /** The user is shown that the session is recorded before the desktop is. */
  sessionNotice: boolean
  /** Bytes of a session's desktop that are recorded; past it the session ends. */
  desktopQuota: number
}

const GIB = 1024 * 1024 * 1024

export const DESKTOP_OPTIONS: Readonly<DesktopOptions> = {
  viewOnly: false,
  maskKeys: true,
  sessionNotice: true,
  desktopQuota: 64 * GIB,
}
