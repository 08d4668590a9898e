/**
 * Options of a connection policy for VNC sessions, besides those for all desktops, as fields of
 * `/connectionpolicies`.
 */
import { type Static, Type } from 'typebox'
import { VNC_SECURITY_TYPES, type VncOptions } from '../../model/vnc-options.ts'
import { type DesktopUpdate, desktopOptionsOf } from './desktop-options.ts'
import { exact, oneOf, partial } from './fields.ts'

export const VncFields = exact({
  security_types: Type.Array(oneOf(VNC_SECURITY_TYPES, 'security type'), {
    minItems: 1,
    maxItems: VNC_SECURITY_TYPES.length,
    'x-ordered': true,
    description:
      'VNC: how the broker may secure the connection and sign in at the targets; the first one that a target offers is used. If a key is pinned, only those that show a key of its kind are used (x509…: a certificate, ra2…: an RSA key), since the others cannot detect an attacker in between',
  }),
})
export const VncUpdate = partial(VncFields)

export function vncFieldsOf(options: VncOptions): Static<typeof VncFields> {
  return { security_types: [...options.securityTypes] }
}

/** Returns the options with the body's changes. */
export function vncOptionsOf(
  body: Static<typeof VncUpdate> & Static<typeof DesktopUpdate>,
  old: VncOptions,
): VncOptions {
  return {
    ...desktopOptionsOf(body, old),
    securityTypes: body.security_types ? [...new Set(body.security_types)] : old.securityTypes,
  }
}
