/**
 * The configuration that the broker uses: defaults filled in, paths absolute, units converted, secrets read.
 */

import type { DatabasePlace } from '../model/database.ts'
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
  /** Absent: self-signed, in the data folder. Both fields or none. */
  certificate?: string
  key?: string
}

export interface ClearTextListen extends ListenAddress {
  /** Networks that clients may come from. */
  allow: string[]
}

export interface VncListen extends TlsListen {
  /** Security types offered to viewers, in this order. */
  securityTypes: VncOfferedType[]
  /** Networks from which viewers may leave the desktop in clear text. */
  allowClear: string[]
}

export interface RdpListen extends TlsListen {
  nla: NlaMode
}

/** `host`: an address, not a name. */
export interface DnsServer {
  host: string
  port: number
}

/** Form of what a syslog message says; its header is always that of RFC 5424. */
export const SYSLOG_FORMATS = ['rfc5424', 'cef', 'leef', 'ecs'] as const
export type SyslogFormat = (typeof SYSLOG_FORMATS)[number]

export interface SyslogTarget {
  host: string
  port: number
  transport: 'udp' | 'tcp' | 'tls'
  format: SyslogFormat
  /** PEM file with the receiver's authorities; absent: the system's. */
  ca?: string
  /** PEM files with the certificate that the receiver is shown, and its key. */
  client?: { certificate: string; key: string }
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

/** SHA-1, MD5 and DES are not offered. */
export const AGENT_AUTH = ['sha224', 'sha256', 'sha384', 'sha512'] as const
/** AES with keys of 128 and of 256 bits. */
export const AGENT_PRIV = ['aes', 'aes256'] as const

export interface SnmpUser {
  user: string
  auth: (typeof AGENT_AUTH)[number]
  authPassword: Secret
  priv: (typeof AGENT_PRIV)[number]
  privPassword: Secret
}

/** One of `community` and `v3` at least. */
export interface SnmpAgentConfig extends ListenAddress {
  /** Networks that managers may come from. */
  allow: string[]
  /** Of version 2c. */
  community?: Secret
  v3?: SnmpUser
}

export interface ObjectStoreConfig {
  /** Absent: Amazon's for the region. */
  endpoint?: string
  region: string
  bucket: string
  /** Empty, or ends with a slash. */
  prefix: string
  accessKey: string
  secretKey: Secret
  pathStyle: boolean
  /** PEM file with the store's authorities; absent: the system's. */
  ca?: string
  /** Milliseconds; absent: for ever. */
  keepLocal?: number
  /** Milliseconds. */
  segmentInterval: number
  /** Bytes per second; 0: no limit. */
  rate: number
}

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug', 'trace'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export interface Config {
  /** Path of the configuration file. */
  file: string
  /**
   * Files with secrets in clear text: this one if it has any, the files that it names, the listeners' private
   * keys.
   */
  secretFiles: string[]
  dataDir: string
  hostname: string
  /** Origin where browsers reach this broker, such as `https://bastion.example.com`. */
  site: string
  /** A disabled listener is absent. */
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
    /** Shown before sign-in by SSH, Telnet and rlogin; lines end with CR LF. */
    banner?: string
    /** Shown after sign-in, in a terminal; lines end with CR LF. */
    motd?: string
    /** Files with certificates for the front's host keys. */
    hostCertificates: string[]
    /** Files with the public keys of authorities, and with revoked keys. */
    userCa: string[]
    revokedKeys?: string
    revokedHostKeys?: string
  }
  /** Networks whose PROXY headers name the client. */
  proxyProtocol: { from: string[] }
  /** Networks whose X-Forwarded-For names the client of a request. */
  trustedProxies: string[]
  /** Resolvers that are trusted to validate DNSSEC, in this order. */
  dns: { servers: DnsServer[] }
  database: DatabasePlace
  /** Milliseconds for which sessions go on without the database. */
  databaseGrace: number
  masterKey: { file: string } | { env: string }
  recordings: {
    directory: string
    /** Further age recipients besides the broker. */
    recipients: string[]
    /** Whether the broker itself is a recipient. */
    brokerKey: boolean
    /** Contents of the index over sessions. */
    search: 'full' | 'commands' | 'off'
    /** Bytes. */
    minFree: number
    alarmFree: number
    /** Days; 0: for ever. */
    keepDays: number
    /** How many people end a legal hold. */
    holdRelease: HoldRelease
    /** Bytes of all recordings; 0: no limit. */
    maxSize: number
    objectStore?: ObjectStoreConfig
  }
  audit: {
    /** Days to keep rows of the audit log; 0: for ever. */
    keepDays: number
    /** Folder to write rows to before they are removed; absent: none. */
    archive?: string
  }
  /** Number of session workers; 0: sessions run in the broker's own process. */
  workers: number
  /** The user that session workers run as, if it is configured. */
  runAs?: string
  /** Milliseconds. */
  loginGrace: number
  /** Characters. */
  passwords: { minLength: number }
  /** Milliseconds. */
  /** Without `certificateLifetime` no certificates are made. */
  signIn: { checkInterval: number; certificateLifetime?: number }
  /** Milliseconds. */
  ticketLifetime: number
  /** Milliseconds. */
  shutdownGrace: number
  syslog: SyslogTarget[]
  snmp: { enterprise: number; agent?: SnmpAgentConfig; traps: TrapTarget[] }
  log: {
    level: LogLevel
    /** `-`: standard output. */
    file: string
  }
}
