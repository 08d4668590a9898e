/** Provides a recording's file for random access: a file that is only in the object store is copied first. */
import { copyFile, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { INDEX_FILE_NAME } from '../container/format/index.ts'
import { FILE_NAME } from '../container/format/limits.ts'
import type { Bucket } from './bucket/bucket.ts'
import type { CatalogEntry } from './catalog-entry.ts'
import { bytesOf, requireBytes } from './source.ts'

export interface Local {
  /** Entry whose folder contains the file. */
  entry: CatalogEntry
  /** Removes the copy, if there is one. */
  release(): Promise<void>
}

/**
 * Makes the file local. The copy is as sealed as the recording, and as large. Throws BucketError, the disk's
 * errors, and the reason of `signal`.
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
    // If the copy of the index fails, it is rebuilt.
    await copyFile(join(entry.directory, INDEX_FILE_NAME), join(directory, INDEX_FILE_NAME)).catch(() => {})
  } catch (error) {
    await release()
    throw error
  }
  const { stored: _, ...rest } = entry
  return { entry: { ...rest, directory }, release }
}
