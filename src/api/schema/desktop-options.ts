/** Options of a connection policy for desktops of all protocols, as fields of `/connectionpolicies`. */
import { type Static, Type } from 'typebox'
import type { DesktopOptions } from '../../model/desktop-options.ts'
import { exact, partial } from './fields.ts'
import { quota } from './ssh-options.ts'

export const DesktopFields = exact({
  view_only: Type.Boolean({
    description: 'VNC, RDP: nothing that the user types, points at or copies reaches the target',
  }),
  mask_keys: Type.Boolean({
    description:
      'VNC, RDP: the recording contains that keys were pressed, but not which; false: it contains typed text, passwords included',
  }),
  session_notice: Type.Boolean({
    description: 'VNC, RDP: whether the user is shown that the session is recorded, before the desktop is',
  }),
  desktop_quota: quota('of a desktop that are recorded in one session; past it the session ends'),
})
export const DesktopUpdate = partial(DesktopFields)

export function desktopFieldsOf(options: DesktopOptions): Static<typeof DesktopFields> {
  return {
    view_only: options.viewOnly,
    mask_keys: options.maskKeys,
    session_notice: options.sessionNotice,
    desktop_quota: options.desktopQuota,
  }
}

/** Returns the options with the body's changes. */
export function desktopOptionsOf(body: Static<typeof DesktopUpdate>, old: DesktopOptions): DesktopOptions {
  return {
    viewOnly: body.view_only ?? old.viewOnly,
    maskKeys: body.mask_keys ?? old.maskKeys,
    sessionNotice: body.session_notice ?? old.sessionNotice,
    desktopQuota: body.desktop_quota ?? old.desktopQuota,
  }
}
