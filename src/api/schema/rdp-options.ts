/**
 * Options of a connection policy for RDP sessions, besides those for all desktops, as fields of
 * `/connectionpolicies`.
 */
import { type Static, Type } from 'typebox'
import {
  COLOUR_DEPTHS,
  dynamicChannelFlaw,
  MAX_DYNAMIC_CHANNEL_NAME,
  MAX_DYNAMIC_CHANNELS,
  MAX_LOGON_WAIT,
  MAX_REDIRECT_NETWORKS,
  RDP_SECURITY,
  type RdpOptions,
} from '../../model/rdp-options.ts'
import { type DesktopUpdate, desktopOptionsOf } from './desktop-options.ts'
import { check, checkNetworks, exact, oneOf, partial } from './fields.ts'

export const RdpFields = exact({
  security: Type.Array(oneOf(RDP_SECURITY, 'way to secure the connection'), {
    minItems: 1,
    maxItems: RDP_SECURITY.length,
    'x-ordered': true,
    description:
      'RDP: how the broker may secure the connection and sign in at the targets; the first one that a target offers is used. credssp (NLA) signs in before there is a desktop; tls hands the password over inside TLS',
  }),
  kerberos: Type.Boolean({
    description: 'RDP: whether credssp uses Kerberos, where the domain of the account has `kerberos`',
  }),
  ntlm: Type.Boolean({
    description:
      'RDP: whether credssp may use NTLM, without Kerberos or when that has failed; false: Kerberos or nothing',
  }),
  colour_depth: Type.Unsafe<(typeof COLOUR_DEPTHS)[number]>(
    Type.Integer({
      enum: [...COLOUR_DEPTHS],
      description: 'RDP: bits of a pixel that targets are asked for',
    }),
  ),
  redirect_to: Type.Array(Type.String({ maxLength: 64 }), {
    maxItems: MAX_REDIRECT_NETWORKS,
    description:
      'RDP: addresses and networks (CIDR) that a target (a connection broker of Windows) may send the session on to; it may always send it to its own address',
  }),
  logon_wait: Type.Integer({
    minimum: 0,
    maximum: MAX_LOGON_WAIT,
    description:
      'RDP: seconds in which a target has to report the logon if credssp has not proven it; until then no input of the user reaches it. 0: for targets without a logon',
  }),
  dynamic_channels: Type.Array(Type.String({ maxLength: MAX_DYNAMIC_CHANNEL_NAME }), {
    maxItems: MAX_DYNAMIC_CHANNELS,
    description:
      'RDP: names of dynamic virtual channels that are allowed besides those that need a right; their content is not recorded',
  }),
})
export const RdpUpdate = partial(RdpFields)

export function rdpFieldsOf(options: RdpOptions): Static<typeof RdpFields> {
  return {
    security: [...options.security],
    kerberos: options.kerberos,
    ntlm: options.ntlm,
    colour_depth: options.colourDepth,
    redirect_to: [...options.redirectTo],
    logon_wait: options.logonWait,
    dynamic_channels: [...options.dynamicChannels],
  }
}

/**
 * Returns the options with the body's changes.
 * @throws ApiError `invalid_field` that names a bad network or a channel that cannot be allowed
 */
export function rdpOptionsOf(
  body: Static<typeof RdpUpdate> & Static<typeof DesktopUpdate>,
  old: RdpOptions,
): RdpOptions {
  checkNetworks('redirect_to', body.redirect_to)
  for (const [index, name] of (body.dynamic_channels ?? []).entries()) {
    check(`dynamic_channels/${index}`, dynamicChannelFlaw(name))
  }
  return {
    ...desktopOptionsOf(body, old),
    security: body.security ? [...new Set(body.security)] : old.security,
    kerberos: body.kerberos ?? old.kerberos,
    ntlm: body.ntlm ?? old.ntlm,
    colourDepth: body.colour_depth ?? old.colourDepth,
    redirectTo: body.redirect_to ? [...new Set(body.redirect_to)] : old.redirectTo,
    logonWait: body.logon_wait ?? old.logonWait,
    dynamicChannels: body.dynamic_channels ? [...new Set(body.dynamic_channels)] : old.dynamicChannels,
  }
}
