/**
 * Renews the data key: opens every value sealed under it and seals it under a new one. Wrapping the old data
 * key with a new master key (`rotate`) is quicker, but useless against an attacker that once had both.
 */
import { randomBytes } from 'node:crypto'
import type { Secret } from '../model/secret.ts'
import type { Store } from '../store/store.ts'
import { newMasterKey, replaceDataKey } from './master-key.ts'
import { type DataKey, isSealedUnder, KEY_ID_BYTES, open, seal } from './seal.ts'
import { Vault } from './vault.ts'

/**
 * Reseals all values of the old data key under a new one, wrapped with `fresh`, and returns the new vault.
 * `store` is that of a transaction, so that all values are resealed or none.
 * @throws MasterKeyError if `old` is not the master key of this database
 * @throws UnsealError if a value was altered; stopping there loses nothing
 */
export async function renewDataKey(store: Store, old: Secret, fresh: Secret): Promise<Vault> {
  const next: DataKey = { id: randomBytes(KEY_ID_BYTES), key: newMasterKey() }
  const before = await replaceDataKey(store.settings, old, next, fresh)
  try {
    for (const { place, sealed } of await store.sealed.all()) {
      // Not all settings are sealed.
      if (place.table === 'settings' && !isSealedUnder(before, sealed)) continue
      const secret = open(before, place, sealed)
      try {
        await store.sealed.replace({ place, sealed: seal(next, place, secret) })
      } finally {
        secret.wipe()
      }
    }
  } finally {
    before.key.wipe()
  }
  return new Vault(next, store)
}
