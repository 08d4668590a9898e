/**
 * Hashes of passwords as the database keeps them: sealed for their user. Who steals the database without the master
 * key has nothing to guess against, and nobody can put one user's password in another's place.
 */
import type { Id } from '../model/objects.ts'
import { Secret } from '../model/secret.ts'
import type { UserRepository } from '../store/store.ts'

/** What of the vault is needed for it. */
export interface HashSeal {
  seal(place: { table: string; id: string; field: string }, secret: Secret): Uint8Array
  open(place: { table: string; id: string; field: string }, sealed: Uint8Array): Secret
}

const placeOf = (userId: Id) => ({ table: 'users', id: userId, field: 'password_hash' })

export function sealHash(vault: Pick<HashSeal, 'seal'>, userId: Id, hash: string): Uint8Array {
  const secret = Secret.of(hash)
  try {
    return vault.seal(placeOf(userId), secret)
  } finally {
    secret.wipe()
  }
}

/** @throws UnsealError when it was changed, or is another's */
export function openHash(vault: Pick<HashSeal, 'open'>, userId: Id, sealed: Uint8Array): string {
  const secret = vault.open(placeOf(userId), sealed)
  try {
    return secret.revealText()
  } finally {
    secret.wipe()
  }
}

/** Seals what an earlier version has left in clear text. */
export async function sealClearHashes(users: UserRepository, vault: HashSeal): Promise<void> {
  const clear = await users.clearPasswordHashes()
  for (const { id, hash } of clear) await users.sealPasswordHash(id, hash, sealHash(vault, id, hash))
}
