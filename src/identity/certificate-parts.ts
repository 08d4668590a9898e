/** A parsed OpenSSH certificate, and the reasons for refusing one. */
import type { Buffer } from 'node:buffer'
import type { PublicKey } from './public-key.ts'

export interface Certificate {
  /** The certified key. */
  key: PublicKey
  serial: bigint
  isOfUser: boolean
  isOfHost: boolean
  keyId: Buffer
  principals: readonly string[]
  /** Seconds since the epoch. */
  validAfter: bigint
  validBefore: bigint
  /** Name to data: an unknown one must be refused. */
  criticalOptions: ReadonlyMap<string, Buffer>
  /** Name to data: an unknown one may be ignored. */
  extensions: ReadonlyMap<string, Buffer>
  authority: PublicKey
  /** The bytes that the authority signed, and its signature field. */
  signed: Buffer
  signature: Buffer
}

/** Why a certificate is refused, for the audit log. */
export type CertificateFlaw =
  | 'certificate_authority'
  | 'certificate_signature'
  | 'certificate_type'
  | 'certificate_principal'
  | 'certificate_validity'
  | 'certificate_source'
  | 'certificate_option'
  | 'certificate_force_command'
