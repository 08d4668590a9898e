/** The configuration as the broker uses it: defaults filled in, paths absolute, units resolved, secrets read. */
import type { HoldRelease } from '../model/objects.ts'
import type { NlaMode } from '../model/rdp-ticket.ts'
import type { Secret } from '../model/secret.ts'
import type { VncOfferedType } from '../model/vnc-options.ts'

/** Port 0: the system chooses one. */
export interface ListenAddress {
  host: string
  port: number
}

export interface TlsListen extends ListenAddress {
  /** Absent: self-signed, in the data folder. Both or none. */
  certificate?: string
  key?: string
}

export interface ClearTextListen extends ListenAddress {
  /** Networks that clients may come from. */
  allow: string[]
}

export interface VncListen extends TlsListen {
  /** What is offered to viewers, in this order. */
  securityTypes: VncOfferedType[]
  /** Networks that viewers may come from which leave the desktop in clear text. */
  allowClear: string[]
}

export interface RdpListen extends TlsListen {
  nla: NlaMode
}

/** `host`: an address. */
export interface DnsServer {
  host: string
  port: number
}

export interface SyslogTarget {
  host: string
  port: number
  transport: 'udp' | 'tcp' | 'tls'
  format: 'rfc5424'
  /** PEM file to check the receiver with; absent: the system's authorities. */
  ca?: string
}

export type TrapTarget = { host: string; port: number; inform: boolean } & (
  | { version: '2c'; community: Secret }
  | {
      version: 3
      user: string
      auth: 'sha' | 'sha224' | 'sha256' | 'sha384' | 'sha512'
      authPassword: Secret
      priv: 'aes'
      privPassword: Secret
    }
)

export interface ObjectStoreConfig {
  /** Absent: Amazon's of the region. */
  endpoint?: string
  region: string
  bucket: string
  /** Empty, or ending with a slash. */
  prefix: string
  accessKey: string
  secretKey: Secret
  pathStyle: boolean
  /** PEM file to check the store with; absent: the system's authorities. */
  ca?: string
  /** Milliseconds; absent: always. */
  keepLocal?: number
  /** Milliseconds. */
  segmentInterval: number
  /** Bytes a second; 0: as fast as it goes. */
  rate: number
}

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug', 'trace'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export interface Config {
  /** The configuration file. */
  file: string
  /** Files that hold secrets in clear text: this one where it does, those that it names, private keys of listeners. */
  secretFiles: string[]
  dataDir: string
  hostname: string
  /** A listener that is switched off is absent. */
  listen: {
    https?: TlsListen
    ssh?: ListenAddress
    telnet?: ClearTextListen
    rlogin?: ClearTextListen
    telnets?: TlsListen
    vnc?: VncListen
    rdp?: RdpListen
    metrics?: ListenAddress
  }
  ssh: {
    /** Shown before sign-in, by every front; lines end with CR LF. */
    banner?: string
    /** Shown after it, in a terminal; lines end with CR LF. */
    motd?: string
    /** Files with certificates about the host keys of the front. */
    hostCertificates: string[]
    /** Files with the public keys of authorities, and with what is revoked. */
    userCa: string[]
    revokedKeys?: string
    revokedHostKeys?: string
  }
  /** Resolvers that are believed when they say that DNSSEC proves an answer; in this order. */
  dns: { servers: DnsServer[] }
  database: { file: string }
  masterKey: { file: string } | { env: string }
  recordings: {
    directory: string
    /** age recipients besides the broker's own. */
    recipients: string[]
    /** Whether the broker is a recipient itself. */
    brokerKey: boolean
    /** What is put into the index over sessions. */
    search: 'full' | 'commands' | 'off'
    /** Bytes. */
    minFree: number
    alarmFree: number
    /** Days; 0: for ever. */
    keepDays: number
    /** People that it takes to end a legal hold. */
    holdRelease: HoldRelease
    /** Bytes of all recordings; 0: as much as there is room for. */
    maxSize: number
    objectStore?: ObjectStoreConfig
  }
  audit: {
    /** Days that rows of the audit log are kept; 0: for ever. */
    keepDays: number
    /** Folder that they are written to before they are removed; absent: nowhere. */
    archive?: string
  }
  /** Milliseconds. */
  loginGrace: number
  /** Characters. */
  passwords: { minLength: number }
  /** Milliseconds. */
  ticketLifetime: number
  /** Milliseconds. */
  shutdownGrace: number
  syslog: SyslogTarget[]
  snmp: { enterprise: number; traps: TrapTarget[] }
  log: {
    level: LogLevel
    /** `-`: standard output. */
    file: string
  }
}
