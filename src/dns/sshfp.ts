/** SSHFP records (RFC 4255 3.1): what the DNS says of a host's keys. */

export const TYPE_SSHFP = 44

export interface Sshfp {
  /** Of the key; see RFC 4255 3.1.1, RFC 6594 3.1 and RFC 7479. */
  algorithm: number
  /** How the fingerprint is made: 1 SHA-1, 2 SHA-256. */
  digest: number
  fingerprint: Buffer
}

export interface SshfpAnswer {
  /** The resolver says that DNSSEC proves them (RFC 4035 3.2.3). */
  isAuthenticated: boolean
  records: readonly Sshfp[]
}

/** Reads a record's data; undefined: too short to be one. */
export function parseSshfp(data: Buffer): Sshfp | undefined {
  const [algorithm, digest] = data
  if (algorithm === undefined || digest === undefined || data.length < 3) return undefined
  return { algorithm, digest, fingerprint: Buffer.from(data.subarray(2)) }
}
