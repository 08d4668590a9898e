/** The form in which PostgreSQL keeps a password for SCRAM-SHA-256 (RFC 5802 3, RFC 7677; src/common/scram-common.c). */
import { Buffer } from 'node:buffer'
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto'

/** As PostgreSQL itself has it by default (scram_iterations). */
export const SCRAM_ITERATIONS = 4096
export const SCRAM_SALT_BYTES = 16

/** Returns the verifier of a password of printable ASCII, which SASLprep (RFC 4013) leaves as it is. */
export function scramVerifier(password: string, salt: Uint8Array): string {
  const salted = pbkdf2Sync(password, salt, SCRAM_ITERATIONS, 32, 'sha256')
  const keyOf = (name: string): Buffer => createHmac('sha256', salted).update(name).digest()
  const stored = createHash('sha256').update(keyOf('Client Key')).digest('base64')
  const server = keyOf('Server Key').toString('base64')
  return `SCRAM-SHA-256$${SCRAM_ITERATIONS}:${Buffer.from(salt).toString('base64')}$${stored}:${server}`
}
