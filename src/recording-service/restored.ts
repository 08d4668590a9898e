/**
 * The note that a restore leaves in the database for the next start, with the backup's identity. The start
 * uses it to separate sessions that ran at the backup from ones that a crash has cut, and takes up recordings
 * that are newer than the backup.
 */
import type { SettingRepository } from '../store/store.ts'

const SETTING = 'backup.restored'

export interface RestoreNote {
  /** Time of the backup, RFC 3339. */
  created: string
  /** The last row of its audit log. */
  row: number
}

type Settings = Pick<SettingRepository, 'get' | 'set' | 'remove'>

export async function noteRestore(settings: Settings, { created, row }: RestoreNote): Promise<void> {
  await settings.set(SETTING, Buffer.from(JSON.stringify({ created, row })))
}

/** Returns undefined if the last start has handled the note, or nothing was restored. */
export async function readRestoreNote(settings: Settings): Promise<RestoreNote | undefined> {
  const value = await settings.get(SETTING)
  return value && (JSON.parse(Buffer.from(value).toString('utf8')) as RestoreNote)
}

export async function forgetRestore(settings: Settings): Promise<void> {
  await settings.remove(SETTING)
}

export const restoredFrom = ({ created, row }: RestoreNote): string =>
  `restored from the backup of ${created}, audit log up to row ${row}`
