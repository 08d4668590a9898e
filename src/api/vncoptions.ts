/** What a connection policy says of VNC sessions, as fields of `/connectionpolicies`. */
import { type Static, Type } from 'typebox'
import { VNC_SECURITY_TYPES, type VncOptions } from '../model/vnc-options.ts'
import { exact, oneOf, partial } from './fields.ts'
import { quota } from './sshoptions.ts'

export const VncFields = exact({
  view_only: Type.Boolean({
    description: 'VNC: nothing that the user types, points at or copies reaches the target',
  }),
  mask_keys: Type.Boolean({
    description:
      'VNC: the recording has that keys were pressed, and not which; false: what was typed is in it, passwords included',
  }),
  session_notice: Type.Boolean({
    description: 'VNC: whether the user is shown that the session is recorded, before the desktop is',
  }),
  security_types: Type.Array(oneOf(VNC_SECURITY_TYPES, 'security type'), {
    minItems: 1,
    maxItems: VNC_SECURITY_TYPES.length,
    'x-ordered': true,
    description:
      'VNC: how the broker may secure the connection and sign in at the targets; of those that a target offers the first is taken. Where a key is pinned, only those count that show one of its kind (x509…: a certificate, ra2…: an RSA key); the rest can be anybody in between',
  }),
  desktop_quota: quota('of a VNC desktop that are recorded in one session; past it the session ends'),
})
export const VncUpdate = partial(VncFields)

export function vncFieldsOf(options: VncOptions): Static<typeof VncFields> {
  return {
    view_only: options.viewOnly,
    mask_keys: options.maskKeys,
    session_notice: options.sessionNotice,
    security_types: [...options.securityTypes],
    desktop_quota: options.desktopQuota,
  }
}

/** The options as they are with what the body gives. */
export function vncOptionsOf(body: Static<typeof VncUpdate>, old: VncOptions): VncOptions {
  return {
    viewOnly: body.view_only ?? old.viewOnly,
    maskKeys: body.mask_keys ?? old.maskKeys,
    sessionNotice: body.session_notice ?? old.sessionNotice,
    securityTypes: body.security_types ? [...new Set(body.security_types)] : old.securityTypes,
    desktopQuota: body.desktop_quota ?? old.desktopQuota,
  }
}
