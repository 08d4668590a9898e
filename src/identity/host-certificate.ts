/** Host certificates: whether one vouches for the key of the dialled host. */
import { isSigned, isValidAt } from './certificate.ts'
import type { Certificate, CertificateFlaw } from './certificate-parts.ts'
import type { PublicKey } from './public-key.ts'

export interface HostCertificateUse {
  authorities: readonly PublicKey[]
  /** Name (regardless of case) or address, as dialled. */
  host: string
  port: number
  /** Milliseconds since the epoch. */
  now: number
}

export type HostCertificateFlaw = Exclude<CertificateFlaw, 'certificate_source' | 'certificate_force_command'>

/**
 * Returns why the certificate does not vouch for its key at this host, or undefined if it does. Never throws.
 */
export function flawOfHostCertificate(
  certificate: Certificate,
  { authorities, host, port, now }: HostCertificateUse,
): HostCertificateFlaw | undefined {
  const { authority, principals, criticalOptions } = certificate
  if (!authorities.some(({ blob }) => blob.equals(authority.blob))) return 'certificate_authority'
  if (!isSigned(certificate)) return 'certificate_signature'
  if (!certificate.isOfHost) return 'certificate_type'
  // One without principals would be valid for every host; patterns are not supported.
  const name = host.toLowerCase()
  const names = [name, `[${name}]:${port}`]
  if (!principals.some((principal) => names.includes(principal.toLowerCase()))) return 'certificate_principal'
  if (!isValidAt(certificate, now)) return 'certificate_validity'
  // OpenSSH defines none for hosts.
  return criticalOptions.size > 0 ? 'certificate_option' : undefined
}
