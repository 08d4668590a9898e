/** SSHFP records (RFC 4255 3.1): fingerprints of a host's keys in the DNS. */

export const TYPE_SSHFP = 44

export interface Sshfp {
  /** Algorithm of the key; see RFC 4255 3.1.1, RFC 6594 3.1 and RFC 7479. */
  algorithm: number
  /** Hash of the fingerprint: 1 SHA-1, 2 SHA-256. */
  digest: number
  fingerprint: Buffer
}

export interface SshfpAnswer {
  /** The AD bit: the resolver has verified the records with DNSSEC (RFC 4035 3.2.3). */
  isAuthenticated: boolean
  records: readonly Sshfp[]
}

/** Parses a record's data. Returns undefined if it is too short. */
export function parseSshfp(data: Buffer): Sshfp | undefined {
  const [algorithm, digest] = data
  if (algorithm === undefined || digest === undefined || data.length < 3) return undefined
  return { algorithm, digest, fingerprint: Buffer.from(data.subarray(2)) }
}
