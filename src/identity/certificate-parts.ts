/** An OpenSSH certificate, parsed, and the reasons for which one is refused. */
import type { Buffer } from 'node:buffer'
import type { PublicKey } from './public-key.ts'

export interface Certificate {
  /** The key that it is about. */
  key: PublicKey
  serial: bigint
  isOfUser: boolean
  isOfHost: boolean
  keyId: Buffer
  principals: readonly string[]
  /** Seconds since the epoch. */
  validAfter: bigint
  validBefore: bigint
  /** Name to data: who does not know one must refuse. */
  criticalOptions: ReadonlyMap<string, Buffer>
  /** Name to data: who does not know one may ignore it. */
  extensions: ReadonlyMap<string, Buffer>
  authority: PublicKey
  /** What the authority signed, and its signature field. */
  signed: Buffer
  signature: Buffer
}

/** Why a certificate does not let somebody in: for the audit log. */
export type CertificateFlaw =
  | 'certificate_authority'
  | 'certificate_signature'
  | 'certificate_type'
  | 'certificate_principal'
  | 'certificate_validity'
  | 'certificate_source'
  | 'certificate_option'
  | 'certificate_force_command'
