/**
 * Renews the data key: every value that is sealed under it is opened and sealed anew under a fresh one. Wrapping the old
 * data key with a new master key (`rotate`) is quicker, and of no use against somebody who had both once.
 */
import { randomBytes } from 'node:crypto'
import type { Secret } from '../model/secret.ts'
import type { Store } from '../store/store.ts'
import { Vault } from './credentials.ts'
import { newMasterKey, replaceDataKey } from './master-key.ts'
import { type DataKey, isSealedUnder, KEY_ID_BYTES, open, seal } from './seal.ts'

/**
 * Seals all that the old data key has sealed under a fresh one, which `fresh` wraps, and returns the vault of it. `store`
 * is that of a transaction: all of it stands afterwards, or nothing.
 * @throws MasterKeyError when `old` is not the master key of this database
 * @throws UnsealError when a value was changed: nothing is lost by stopping there
 */
export async function renewDataKey(store: Store, old: Secret, fresh: Secret): Promise<Vault> {
  const next: DataKey = { id: randomBytes(KEY_ID_BYTES), key: newMasterKey() }
  const before = await replaceDataKey(store.settings, old, next, fresh)
  try {
    for (const { place, sealed } of await store.sealed.all()) {
      // settings are not all sealed
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
