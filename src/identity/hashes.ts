/**
 * Password hashes in the database, sealed for their user: a stolen database is useless for guessing without
 * the master key, and a hash cannot be moved to another user.
 */
import type { Id } from '../model/objects.ts'
import { Secret } from '../model/secret.ts'
import type { UserRepository } from '../store/store.ts'

/** The part of the vault that is needed here. */
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

/** @throws UnsealError if it was altered, or belongs to another user */
export function openHash(vault: Pick<HashSeal, 'open'>, userId: Id, sealed: Uint8Array): string {
  const secret = vault.open(placeOf(userId), sealed)
  try {
    return secret.revealText()
  } finally {
    secret.wipe()
  }
}

/** Seals the hashes that an earlier version stored in clear text. */
export async function sealClearHashes(users: UserRepository, vault: HashSeal): Promise<void> {
  const clear = await users.clearPasswordHashes()
  for (const { id, hash } of clear) await users.sealPasswordHash(id, hash, sealHash(vault, id, hash))
}
