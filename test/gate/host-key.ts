/** Host keys of targets that need not be proved: the gate judges the blob. */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { sshString } from '../identity/keys.ts'

/** Returns the blob of an Ed25519 host key (RFC 8709 4), another one for each seed. */
export function hostKey(seed: string): Buffer {
  return Buffer.concat([sshString('ssh-ed25519'), sshString(createHash('sha256').update(seed).digest())])
}
