/**
 * Whether the DNS vouches for a host key (RFC 4255 2.4). Only SHA-256 counts: SHA-1 fingerprints can be
 * forged.
 */
import { createHash } from 'node:crypto'
import type { SshfpAnswer } from '../dns/sshfp.ts'

export type SshfpFlaw = 'missing' | 'unauthenticated' | 'weak' | 'differs'

/** RFC 6594 3.2. */
const SHA256 = 2

/** Types of keys and their numbers: RFC 4255 3.1.1, RFC 6594 3.1, RFC 7479. */
const ALGORITHMS: Readonly<Record<string, number>> = {
  'ssh-rsa': 1,
  'ssh-dss': 2,
  'ecdsa-sha2-nistp256': 3,
  'ecdsa-sha2-nistp384': 3,
  'ecdsa-sha2-nistp521': 3,
  'ssh-ed25519': 4,
}

/** Returns why the answer does not vouch for the key, or undefined if it does. */
export function flawOfSshfp(
  { isAuthenticated, records }: SshfpAnswer,
  type: string,
  blob: Uint8Array,
): SshfpFlaw | undefined {
  if (records.length === 0) return 'missing'
  if (!isAuthenticated) return 'unauthenticated'
  const strong = records.filter(({ digest }) => digest === SHA256)
  if (strong.length === 0) return 'weak'
  const fingerprint = createHash('sha256').update(blob).digest()
  const isNamed = strong.some(
    (record) => record.algorithm === ALGORITHMS[type] && record.fingerprint.equals(fingerprint),
  )
  return isNamed ? undefined : 'differs'
}
