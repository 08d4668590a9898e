/**
 * Files of the data folder as stored in a backup: the data folder has host keys and certificates' keys in
 * clear text, so a backup seals them with age to the broker's own identity, which only the master key opens.
 */
import { Decrypter, Encrypter } from 'age-encryption'
import type { RecordingKeys } from '../recording-service/service.ts'
import { BackupError, type Owner, readSmall, writeNewFile } from './files.ts'

/** Bytes of a file; lists of revoked keys are the longest. */
const MAX_FILE = 16 * 1024 * 1024
/** Sealing for one recipient adds far less. */
const MAX_SEALED = MAX_FILE + 64 * 1024

/** Seals the file's content into a new one. */
export async function sealFile(source: string, target: string, recipient: string): Promise<void> {
  const plain = await readSmall(source, MAX_FILE)
  const encrypter = new Encrypter()
  encrypter.addRecipient(recipient)
  await writeNewFile(target, await encrypter.encrypt(plain))
  plain.fill(0)
}

/**
 * Opens a file of `sealFile` into a new one, mode 0600. @throws BackupError if it is not sealed to this
 * broker
 */
export async function openSealed(
  source: string,
  target: string,
  identities: RecordingKeys['identities'],
  owner: Owner | undefined,
): Promise<void> {
  const decrypter = new Decrypter()
  for (const identity of identities) decrypter.addIdentity(identity.revealText())
  const plain = await decrypter.decrypt(await readSmall(source, MAX_SEALED)).catch((error: Error) => {
    throw new BackupError(`${source} cannot be opened with the keys of this backup: ${error.message}`)
  })
  await writeNewFile(target, plain, owner)
  plain.fill(0)
}
