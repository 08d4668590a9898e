/**
 * Decides whether a target's host key is vouched for: by an authority's certificate, or by SSHFP records in
 * the DNS. A revoked key is refused under every policy.
 */
import { DnsError } from '../dns/error.ts'
import type { SshfpAnswer } from '../dns/sshfp.ts'
import type { RevocationFile } from '../identity/authorities.ts'
import { parseCertificate } from '../identity/certificate.ts'
import type { Certificate } from '../identity/certificate-parts.ts'
import { flawOfHostCertificate, type HostCertificateFlaw } from '../identity/host-certificate.ts'
import { type PublicKey, PublicKeyError, parseAuthorizedKey } from '../identity/public-key.ts'
import { RevocationListError } from '../identity/revocation.ts'
import { flawOfSshfp, type SshfpFlaw } from '../identity/sshfp.ts'

/** Trust settings from the configuration, which may change while the broker runs. */
export interface HostTrust {
  revokedKeys?: Pick<RevocationFile, 'current'>
  /** Looks up the host's SSHFP records. Absent if no resolver is trusted. @throws DnsError */
  sshfp?: (host: string) => Promise<SshfpAnswer>
}

/**
 * Why a host key is not trusted. `isContradiction`: there is evidence against it, not just none for it, so it
 * raises an alert.
 */
export interface Doubt {
  reason: string
  isContradiction: boolean
}

const unknown = (reason: string): Doubt => ({ reason, isContradiction: false })
const contradiction = (reason: string): Doubt => ({ reason, isContradiction: true })

/** A key as the target showed it. */
export interface ShownKey {
  type: string
  blob: Buffer
  /** Set if the target showed a certificate for the key. */
  certificate?: Certificate
}

/** Reads a certificate and the key in it. @throws PublicKeyError */
export function certifiedKey(blob: Uint8Array): ShownKey {
  const certificate = parseCertificate(blob)
  return { type: certificate.key.type, blob: certificate.key.blob, certificate }
}

/** Checks the revocation list. If the list cannot be read, every key counts as revoked. */
export function doubtOfRevocation({ revokedKeys }: HostTrust, { blob, certificate }: ShownKey) {
  try {
    const isRevoked = revokedKeys
      ?.current()
      .revokes({ key: certificate?.key ?? { blob }, ...(certificate && { certificate }) })
    return isRevoked === true ? contradiction('it is revoked') : undefined
  } catch (error) {
    if (!(error instanceof RevocationListError)) throw error
    return unknown('the list of revoked host keys cannot be read, so no host key is believed')
  }
}

const CERTIFICATE_FLAWS: Readonly<Record<HostCertificateFlaw, Doubt>> = {
  certificate_authority: contradiction(
    'its certificate is by an authority that is not among host_ca_keys of the connection policy',
  ),
  certificate_signature: contradiction('its certificate is not signed by the authority that it names'),
  certificate_type: contradiction('its certificate is not one of a host'),
  certificate_principal: contradiction('its certificate is for another host'),
  certificate_validity: unknown('its certificate is not valid now'),
  certificate_option: unknown('its certificate has a critical option, and none is known for hosts'),
}

/** Checks policy `ca`; `now` in milliseconds since the epoch. */
export function doubtOfCertificate(
  { certificate }: ShownKey,
  { target, hostCaKeys }: { target: { host: string; port: number }; hostCaKeys: readonly string[] },
  now: number,
): Doubt | undefined {
  const authorities = hostCaKeys.flatMap(readAuthority)
  if (authorities.length === 0) {
    return unknown('host_key_policy is ca, and the connection policy has no host_ca_keys')
  }
  if (!certificate) return unknown('host_key_policy is ca, and it came without a certificate')
  const flaw = flawOfHostCertificate(certificate, { authorities, host: target.host, port: target.port, now })
  return flaw && CERTIFICATE_FLAWS[flaw]
}

/** Lines were checked when they were stored; one that cannot be read now certifies no key. */
function readAuthority(line: string): PublicKey[] {
  try {
    return [parseAuthorizedKey(line)]
  } catch (error) {
    if (error instanceof PublicKeyError) return []
    throw error
  }
}

const SSHFP_FLAWS: Readonly<Record<SshfpFlaw, (host: string) => Doubt>> = {
  missing: (host) => unknown(`${host} has no SSHFP records in the DNS`),
  unauthenticated: (host) =>
    unknown(`the SSHFP records of ${host} are not authenticated by DNSSEC, as far as the resolver says`),
  weak: (host) =>
    unknown(`the SSHFP records of ${host} have no SHA-256 fingerprint, and SHA-1 does not count`),
  differs: (host) => contradiction(`it differs from the SSHFP records of ${host}`),
}

/** Checks policy `dns`. */
export async function doubtOfDns(
  { type, blob }: ShownKey,
  host: string,
  { sshfp }: HostTrust,
): Promise<Doubt | undefined> {
  if (!sshfp) return unknown('host_key_policy is dns, and the configuration trusts no resolver (dns.servers)')
  try {
    const flaw = flawOfSshfp(await sshfp(host), type, blob)
    return flaw && SSHFP_FLAWS[flaw](host)
  } catch (error) {
    if (!(error instanceof DnsError)) throw error
    return unknown(`its SSHFP records were not found: ${error.message}`)
  }
}
