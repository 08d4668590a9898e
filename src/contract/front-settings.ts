/**
 * What the fronts need to serve clients, as plain data: it crosses to session workers. The keys of hosts and of
 * TLS are in it, the only secrets that fronts have of their own (invariant 1).
 */
import type { NlaMode } from '../model/rdp-ticket.ts'
import type { VncOfferedType } from '../model/vnc-options.ts'

/** The listeners for sessions, by their names in the configuration. */
export const FRONT_NAMES = ['ssh', 'telnet', 'rlogin', 'telnets', 'vnc', 'rdp'] as const
export type FrontName = (typeof FRONT_NAMES)[number]

/** Fronts whose name has no settings here are not served. */
export interface FrontSettings {
  /** The bastion's name on its screens. */
  hostname: string
  loginGraceMs: number
  /** Text before the sign-in. */
  banner?: string
  /** Text after the sign-in. */
  motd?: string
  ssh?: SshFrontSettings
  telnet?: ClearTextSettings
  rlogin?: ClearTextSettings
  telnets?: { tls: PemFiles }
  vnc?: {
    tls: PemFiles
    /** RSA key of RA2 in PEM. */
    rsaKey: string
    types: VncOfferedType[]
    /** Networks that may connect in clear text; none if empty. */
    allowClear: string[]
  }
  rdp?: { tls: PemFiles; nla: NlaMode }
}

export interface ClearTextSettings {
  /** Networks that clients may come from. */
  allow: string[]
}

/** A certificate with its chain, and its key. */
export interface PemFiles {
  cert: string
  key: string
}

export interface SshFrontSettings {
  /** Private host keys in OpenSSH's PEM form, one per type, in order of preference. */
  hostKeys: string[]
  /** Future host keys, announced to clients before they are used. */
  nextHostKeys: string[]
  hostCertificates: HostCertificate[]
}

/** A certificate for a host key of the SSH front, shown to clients that ask for one. */
export interface HostCertificate {
  blob: Uint8Array
  /** The blob of the certified key. */
  key: Uint8Array
  /** Milliseconds since the epoch; the certificate is not shown after that. */
  validBefore: number
}
