/** Options of connection policies for desktops of any protocol. */

export interface DesktopOptions {
  /** The user's input does not reach the target. */
  viewOnly: boolean
  /** The recording shows that keys were pressed, but not which. */
  maskKeys: boolean
  /** Before the desktop, the user is shown a notice that the session is recorded. */
  sessionNotice: boolean
  /** Recorded bytes of a session's desktop; the session ends past this limit. */
  desktopQuota: number
}

const GIB = 1024 * 1024 * 1024

export const DESKTOP_OPTIONS: Readonly<DesktopOptions> = {
  viewOnly: false,
  maskKeys: true,
  sessionNotice: true,
  desktopQuota: 64 * GIB,
}
