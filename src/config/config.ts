/** The configuration as the broker uses it: defaults filled in, paths absolute, units resolved, secrets read. */
import type { Secret } from '../model/secret.ts'

/** Port 0: the system chooses one. */
export interface ListenAddress {
  host: string
  port: number
}

export interface HttpsListen extends ListenAddress {
  /** Absent: self-signed, in the data folder. Both or none. */
  certificate?: string
  key?: string
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

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug', 'trace'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export interface Config {
  /** The configuration file. */
  file: string
  dataDir: string
  hostname: string
  /** A listener that is switched off is absent. */
  listen: { https?: HttpsListen; ssh?: ListenAddress; metrics?: ListenAddress }
  ssh: {
    /** Shown before sign-in; lines end with CR LF. */
    banner?: string
    /** Files with the public keys of authorities, and with what is revoked. */
    userCa: string[]
    revokedKeys?: string
  }
  database: { file: string }
  masterKey: { file: string } | { env: string }
  recordings: {
    directory: string
    /** age recipients besides the broker's own. */
    recipients: string[]
    /** Bytes. */
    minFree: number
  }
  /** Milliseconds. */
  loginGrace: number
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
