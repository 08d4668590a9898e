/** The lowest parts of the house, which the broker and the command line beside it both stand on. */
import type { Config } from '../config/config.ts'
import { openDataFolder, shareKeys } from '../host/data-folder.ts'
import { Identities } from '../identity/chain.ts'
import { sealClearHashes } from '../identity/hashes.ts'
import { Lockout } from '../identity/lockout.ts'
import { PasswordHasher } from '../identity/password.ts'
import { PasswordPolicy } from '../identity/policy.ts'
import { openBucket } from '../recording-service/bucket.ts'
import { openRecordingKeys, RecordingService } from '../recording-service/service.ts'
import { openStore } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { openVault, type Vault } from '../vault/vault.ts'

/** What the command line uses beside a broker that may be running: the database and what opens it. */
export interface Foundation {
  store: Store
  vault: Vault
  identities: Identities
  passwords: PasswordHasher
  recordingService: RecordingService
  /** Closes the store; nothing of this is of use afterwards. */
  close(): Promise<void>
}

/** Opens the data folder's contents; makes what the first start has to make. */
export async function openFoundation(config: Config): Promise<Foundation> {
  openDataFolder(config.dataDir)
  const release = shareKeys(config.dataDir)
  let store: Store | undefined
  try {
    store = await openStore({ path: config.database.file })
    const vault = await openVault(store, config.masterKey)
    await sealClearHashes(store.users, vault)
    await store.users.noteLooks()
    const passwords = new PasswordHasher({ policy: new PasswordPolicy(config.passwords) })
    const identities = new Identities(store.users, passwords, new Lockout(), Date.now, vault)
    const { objectStore } = config.recordings
    const recordingService = new RecordingService({
      root: config.recordings.directory,
      keys: await openRecordingKeys(store.settings, vault),
      recipients: config.recordings.recipients,
      brokerKey: config.recordings.brokerKey,
      minimumFree: config.recordings.minFree,
      ...(objectStore && { bucket: openBucket(objectStore) }),
    })
    await recordingService.start()
    const opened = store
    const close = async () => {
      await opened.close()
      release()
    }
    return { store, vault, identities, passwords, recordingService, close }
  } catch (error) {
    await store?.close()
    release()
    throw error
  }
}
