/**
 * A connection policy's options for RDP sessions only: stored as JSON that holds the values that differ from
 * the defaults, and sent to the proxy with the session.
 */
import { DESKTOP_OPTIONS, type DesktopOptions } from './desktop-options.ts'
import { formatOptions, storedOptions } from './stored-options.ts'

/**
 * Ways to secure a connection to a target (MS-RDPBCGR 5.4): `credssp` signs in before the desktop and proves
 * that there is no party in between, `tls` sends the password inside TLS. Both show a certificate, which is
 * pinned.
 */
export const RDP_SECURITY = ['credssp', 'tls'] as const
export type RdpSecurity = (typeof RDP_SECURITY)[number]

/** Bits per pixel that a target can be requested to use. */
export const COLOUR_DEPTHS = [32, 16] as const
export type ColourDepth = (typeof COLOUR_DEPTHS)[number]

export interface RdpOptions extends DesktopOptions {
  /** The first one that the target offers is used; others are refused. */
  security: readonly RdpSecurity[]
  /** CredSSP uses Kerberos where the account's domain has a realm. */
  kerberos: boolean
  /** CredSSP may use NTLM: without Kerberos, or after it has failed. */
  ntlm: boolean
  colourDepth: ColourDepth
  /** Networks that a target may redirect the session to, besides its own address. */
  redirectTo: readonly string[]
  /**
   * Seconds within which a target has to show that it accepted the account, if CredSSP has not proven it; 0:
   * no check.
   */
  logonWait: number
  /** Names of dynamic channels that are forwarded besides those that need a right. */
  dynamicChannels: readonly string[]
}

export const MAX_REDIRECT_NETWORKS = 64
export const MAX_DYNAMIC_CHANNELS = 64
/** Characters. */
export const MAX_DYNAMIC_CHANNEL_NAME = 128

/**
 * Dynamic channels that no list may allow: pictures that the recording would miss (MS-RDPEGFX, MS-RDPEVOR,
 * MS-RDPEGT), and channels that need a right or are not supported (sound, drives, USB, cameras).
 */
const NOT_LISTED =
  /^(Microsoft::Windows::RDS::(Graphics|Video|Geometry|CoreInput|Input|Remote|Auth)|AUDIO_|URBDRC$|RDCamera|FileRedirectorChannel$|(rdpdr|rdpsnd|cliprdr|drdynvc|rail)$)/i

/** Returns why a dynamic channel cannot be allowed, for an administrator, or undefined if it can. */
export function dynamicChannelFlaw(name: string): string | undefined {
  if (!/^[!-~]+$/.test(name)) return 'expected the name of a channel in printable ASCII without spaces'
  return NOT_LISTED.test(name)
    ? 'it holds what a right is about, or pictures and input that would not be recorded'
    : undefined
}

export const MAX_LOGON_WAIT = 600

export const RDP_OPTIONS: Readonly<RdpOptions> = {
  ...DESKTOP_OPTIONS,
  security: ['credssp', 'tls'],
  kerberos: true,
  ntlm: true,
  colourDepth: 32,
  redirectTo: [],
  logonWait: 30,
  dynamicChannels: [],
}

/** For the database: only the values that differ from the defaults. */
export function formatRdpOptions(options: RdpOptions): string {
  return formatOptions(options, RDP_OPTIONS)
}

/** @throws Error for an unknown option or security type, which could not be enforced */
export function parseRdpOptions(text: string): RdpOptions {
  const given = storedOptions(text, RDP_OPTIONS)
  const unknown = given.security?.find((name) => !RDP_SECURITY.includes(name))
  if (unknown !== undefined)
    throw new Error(`a connection policy has the security "${unknown}", which this program does not know`)
  return { ...RDP_OPTIONS, ...given }
}
