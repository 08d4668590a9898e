/** The bytes of a recording, from the disk, or from the object store in pieces if the file is only there. */
import { join } from 'node:path'
import { FILE_NAME } from '../container/format/limits.ts'
import { readPieces } from '../container/session-file.ts'
import type { Bucket } from './bucket/bucket.ts'
import { BucketError, isOfTheStore } from './bucket/error.ts'
import { RANGE_LENGTH } from './bucket/transfer.ts'
import type { CatalogEntry } from './catalog-entry.ts'

/** Attempts for a piece while the store cannot be reached. */
const ATTEMPTS = 3

/** Throws BucketError if the file is in an object store and none is configured; so does reading. */
export function bytesOf(entry: CatalogEntry, bucket: Bucket | undefined): AsyncIterable<Uint8Array> {
  if (!entry.stored) return readPieces(join(entry.directory, FILE_NAME))
  if (bucket) return fromBucket(bucket, entry.stored.key, entry.size)
  throw new BucketError(
    'refused',
    `the recording of session ${entry.session} lies in an object store only: configure recordings.object_store`,
  )
}

/**
 * Throws BucketError unless all of the recording's bytes are available now, as far as that is known before
 * reading.
 */
export async function requireBytes(entry: CatalogEntry, bucket: Bucket | undefined): Promise<void> {
  if (!entry.stored || !bucket) return
  const { key } = entry.stored
  const size = await bucket.ask('size', { key })
  if (size === undefined) throw new BucketError('missing', `there is no ${key} in the bucket`)
  if (size !== entry.size)
    throw new BucketError(
      'content',
      `expected ${entry.size} bytes of ${key} in the bucket, there are ${size}`,
    )
}

/** Fetches one piece at a time, on demand: a slow reader holds no connection open. */
async function* fromBucket(bucket: Bucket, key: string, size: number): AsyncGenerator<Uint8Array> {
  for (let offset = 0; offset < size; offset += RANGE_LENGTH) {
    yield await patiently(bucket, { key, offset, length: Math.min(RANGE_LENGTH, size - offset) })
  }
}

async function patiently(
  bucket: Bucket,
  piece: { key: string; offset: number; length: number },
): Promise<Uint8Array> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await bucket.ask('range', piece)
    } catch (error) {
      if (attempt === ATTEMPTS || !isOfTheStore(error)) throw error
    }
  }
}
