/** Recovery codes: each signs in once in place of a one-time code. They are kept as hashes. */
import { createHash, randomBytes } from 'node:crypto'
import type { Id } from '../../model/objects.ts'
import { base32 } from './totp.ts'

export const RECOVERY_CODES = 10
/** 80 random bits: a hash without salt cannot be guessed. */
const BYTES = 10

/** Returns new codes for a person to note down. */
export function newRecoveryCodes(): string[] {
  return Array.from({ length: RECOVERY_CODES }, () => {
    const text = base32(randomBytes(BYTES))
    return text.match(/.{8}/g)!.join('-').toLowerCase()
  })
}

/** Returns the hash of a code as typed, or undefined for a text that cannot be one. */
export function recoveryDigest(userId: Id, typed: string): Uint8Array | undefined {
  const code = typed.replaceAll(/[\s-]/g, '').toUpperCase()
  if (!/^[A-Z2-7]{16}$/.test(code)) return undefined
  return createHash('sha256').update(`recovery ${userId} ${code}`).digest()
}
