/** The part of net-snmp, which has no types of its own, that the SNMP sink uses. */
declare module 'net-snmp' {
  import type { EventEmitter } from 'node:events'

  export interface Varbind {
    oid: string
    type: number
    value: Buffer | number | string
  }

  export interface SessionOptions {
    version?: number
    transport?: 'udp4' | 'udp6'
    /** Port for traps and informs. */
    trapPort?: number
    port?: number
    /** Milliseconds. */
    timeout?: number
    retries?: number
    backoff?: number
  }

  export interface User {
    name: string
    level: number
    authProtocol: number
    authKey: string
    privProtocol: number
    privKey: string
  }

  export interface Session extends EventEmitter {
    trap(oid: string, varbinds: Varbind[], callback: (error: Error | null) => void): void
    inform(oid: string, varbinds: Varbind[], callback: (error: Error | null) => void): void
    close(): void
  }

  const snmp: {
    Version2c: number
    Version3: number
    ObjectType: { OctetString: number; Unsigned32: number; Counter64: number }
    SecurityLevel: { authPriv: number }
    AuthProtocols: { sha: number; sha224: number; sha256: number; sha384: number; sha512: number }
    PrivProtocols: { aes: number }
    createSession(host: string, community: string, options: SessionOptions): Session
    createV3Session(host: string, user: User, options: SessionOptions): Session
  }
  export default snmp
}
