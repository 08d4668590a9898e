/** A recording whose bytes have to be read from any place: one that lies in the object store only is copied first. */
import { copyFile, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { INDEX_FILE_NAME } from '../container/format/index.ts'
import { FILE_NAME } from '../container/format/limits.ts'
import type { Bucket } from './bucket/bucket.ts'
import type { CatalogEntry } from './catalog-entry.ts'
import { bytesOf, requireBytes } from './source.ts'

export interface Local {
  /** Its folder has the file. */
  entry: CatalogEntry
  /** Removes the copy, if there is one. */
  release(): Promise<void>
}

/**
 * The copy is as sealed as the recording, and as large. Throws BucketError, what the disk throws, and the reason of
 * `signal`.
 */
export async function locally(
  entry: CatalogEntry,
  bucket: Bucket | undefined,
  signal?: AbortSignal,
): Promise<Local> {
  if (!entry.stored) return { entry, release: async () => {} }
  await requireBytes(entry, bucket)
  const bytes = bytesOf(entry, bucket)
  const directory = await mkdtemp(join(tmpdir(), 'sallyport-recording-'))
  const release = () => rm(directory, { recursive: true, force: true })
  try {
    const file = await open(join(directory, FILE_NAME), 'wx', 0o600)
    try {
      for await (const piece of bytes) {
        signal?.throwIfAborted()
        await file.writeFile(piece)
      }
    } finally {
      await file.close()
    }
    // Without its index it is made anew.
    await copyFile(join(entry.directory, INDEX_FILE_NAME), join(directory, INDEX_FILE_NAME)).catch(() => {})
  } catch (error) {
    await release()
    throw error
  }
  const { stored: _, ...rest } = entry
  return { entry: { ...rest, directory }, release }
}
