/**
 * Transfers files to objects: pieces of a growing file, or a whole closed file in resumable parts, with the
 * proof that object and file are equal. Each transfer needs the memory of one part, whatever a file's length.
 */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { BucketError } from './error.ts'
import type { Rate } from './rate.ts'
import type { Part, S3Bucket } from './s3.ts'

const MEBIBYTE = 1024 * 1024
/** Bytes of a segment and of a part: S3 requires at least 5 MiB of every part but the last. */
export const PART_LENGTH = 8 * MEBIBYTE
/** S3's limit is 10 000. */
const MAX_PARTS = 9_900
/** Bytes per request when an object is read back. */
export const RANGE_LENGTH = 4 * MEBIBYTE

/** Returns the length of parts for a file of `size` bytes; more than PART_LENGTH from 77 GiB on. */
export function partLength(size: number): number {
  return Math.max(PART_LENGTH, Math.ceil(size / MAX_PARTS / MEBIBYTE) * MEBIBYTE)
}

export class Transfer {
  readonly #bucket: S3Bucket
  readonly #rate: Rate

  constructor(bucket: S3Bucket, rate: Rate) {
    this.#bucket = bucket
    this.#rate = rate
  }

  /** Uploads the file's bytes after `offset`, at most PART_LENGTH. Returns their number. */
  segment(file: string, offset: number, keyOf: (offset: number) => string): Promise<number> {
    return withFile(file, async (handle, size) => {
      const length = Math.min(size - offset, PART_LENGTH)
      if (length <= 0) return 0
      const bytes = await readAt(handle, offset, length)
      await this.#rate.take(length)
      await this.#bucket.put(keyOf(offset), bytes)
      return length
    })
  }

  /** Returns whether a file of this length is uploaded in parts. */
  isLong(size: number): boolean {
    return size > PART_LENGTH
  }

  /**
   * Uploads a file that no longer changes; `upload` is from `beginUpload` for a long one. Parts in the store
   * are kept.
   */
  whole(file: string, key: string, upload: string | undefined): Promise<void> {
    return withFile(file, async (handle, size) => {
      if (upload === undefined) {
        const bytes = await readAt(handle, 0, size)
        await this.#rate.take(size)
        await this.#bucket.put(key, bytes)
        return
      }
      await this.#inParts(handle, size, key, upload)
    })
  }

  async #inParts(handle: FileHandle, size: number, key: string, upload: string): Promise<void> {
    const length = partLength(size)
    const there = new Map((await this.#bucket.parts(key, upload)).map((part) => [part.number, part]))
    const parts: Part[] = []
    for (let number = 1, at = 0; at < size; number++, at += length) {
      const expected = Math.min(length, size - at)
      const known = there.get(number)
      if (known?.size === expected) {
        parts.push(known)
        continue
      }
      const bytes = await readAt(handle, at, expected)
      await this.#rate.take(expected)
      parts.push(await this.#bucket.putPart(key, upload, number, bytes))
    }
    await this.#bucket.complete(key, upload, parts)
  }

  /** Reads the object back. Size and SHA-256 (hex) of object and file must be equal. */
  verify(file: string, key: string): Promise<{ size: number; sha256: string }> {
    return withFile(file, async (handle, size) => {
      const stored = await this.#bucket.size(key)
      if (stored === undefined)
        throw new BucketError('content', `${key} is not in the bucket after its upload`)
      if (stored !== size)
        throw new BucketError(
          'content',
          `expected ${size} bytes of ${key} in the bucket, there are ${stored}`,
        )
      const ours = createHash('sha256')
      const theirs = createHash('sha256')
      for (let at = 0; at < size; at += RANGE_LENGTH) {
        const length = Math.min(RANGE_LENGTH, size - at)
        await this.#rate.take(length)
        theirs.update(await this.#bucket.range(key, at, length))
        ours.update(await readAt(handle, at, length))
      }
      const sha256 = ours.digest('hex')
      const found = theirs.digest('hex')
      if (found !== sha256)
        throw new BucketError(
          'content',
          `expected ${key} with sha256 ${sha256} in the bucket, it has ${found}`,
        )
      return { size, sha256 }
    })
  }

  /** Removes all objects with this prefix, which ends with a slash. */
  async removeBelow(prefix: string): Promise<void> {
    if (!prefix.endsWith('/')) throw new Error(`expected a prefix that ends with a slash, got ${prefix}`)
    for await (const keys of this.#bucket.list(prefix)) {
      for (const key of keys) await this.#bucket.remove(key)
    }
  }
}

async function withFile<T>(path: string, work: (handle: FileHandle, size: number) => Promise<T>): Promise<T> {
  const handle = await open(path, 'r').catch((error: Error) => {
    throw new BucketError('local', error.message)
  })
  try {
    return await work(handle, (await handle.stat()).size)
  } finally {
    await handle.close()
  }
}

async function readAt(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length)
  for (let at = 0; at < length; ) {
    const { bytesRead } = await handle.read(bytes, at, length - at, position + at)
    if (bytesRead === 0)
      throw new BucketError('local', `the file ended at byte ${position + at} while it was read`)
    at += bytesRead
  }
  return bytes
}
