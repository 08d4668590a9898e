/**
 * What a connection policy says of RDP sessions beside what all have: stored as JSON that holds what differs from the
 * defaults, and handed to the proxy with the session.
 */
import { DESKTOP_OPTIONS, type DesktopOptions } from './desktop-options.ts'
import { formatOptions, storedOptions } from './stored-options.ts'

/**
 * Ways to secure a connection to a target (MS-RDPBCGR 5.4): `credssp` signs in before the desktop and proves that nobody
 * stands in between, `tls` hands the password over inside TLS. Either shows a certificate, which is pinned.
 */
export const RDP_SECURITY = ['credssp', 'tls'] as const
export type RdpSecurity = (typeof RDP_SECURITY)[number]

/** Bits of a pixel that a target is asked for. */
export const COLOUR_DEPTHS = [32, 16] as const
export type ColourDepth = (typeof COLOUR_DEPTHS)[number]

export interface RdpOptions extends DesktopOptions {
  /** Of those that the target offers the first one is taken; others are refused. */
  security: readonly RdpSecurity[]
  /** CredSSP may go by NTLM. */
  ntlm: boolean
  colourDepth: ColourDepth
  /** Networks that a target may send the session on to, beside its own address. */
  redirectTo: readonly string[]
  /** Seconds that a target has to show that it has let the account in, where CredSSP has not proven it; 0: it is believed. */
  logonWait: number
  /** Names of dynamic channels that pass beside those that rights are about. */
  dynamicChannels: readonly string[]
}

export const MAX_REDIRECT_NETWORKS = 64
export const MAX_DYNAMIC_CHANNELS = 64
/** Characters. */
export const MAX_DYNAMIC_CHANNEL_NAME = 128

/**
 * Dynamic channels that no list lets pass: pictures that would not be in the recording (MS-RDPEGFX, MS-RDPEVOR, MS-RDPEGT),
 * and what rights are about, or nothing here is (sound, drives, USB, cameras).
 */
const NOT_LISTED =
  /^(Microsoft::Windows::RDS::(Graphics|Video|Geometry|CoreInput|Input|Remote|Auth)|AUDIO_|URBDRC$|RDCamera|FileRedirectorChannel$|(rdpdr|rdpsnd|cliprdr|drdynvc|rail)$)/i

/** Why a dynamic channel of the name cannot be let pass, for an administrator; undefined: it can. */
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
  ntlm: true,
  colourDepth: 32,
  redirectTo: [],
  logonWait: 30,
  dynamicChannels: [],
}

/** For the database: only what is no default. */
export function formatRdpOptions(options: RdpOptions): string {
  return formatOptions(options, RDP_OPTIONS)
}

/** @throws Error for an option, or a way to secure a connection, that this program does not know: it could not be enforced */
export function parseRdpOptions(text: string): RdpOptions {
  const given = storedOptions(text, RDP_OPTIONS)
  const unknown = given.security?.find((name) => !RDP_SECURITY.includes(name))
  if (unknown !== undefined)
    throw new Error(`a connection policy has the security "${unknown}", which this program does not know`)
  return { ...RDP_OPTIONS, ...given }
}
