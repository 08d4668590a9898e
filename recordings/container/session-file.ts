/**
 * A recording's file as its writer sees it: appended bytes are on the disk when `append` resolves, or the
 * file is cut back to its previous size.
 */
import { Buffer } from 'node:buffer'
import { createReadStream, type ReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { FILE_NAME, LINK_LENGTH } from './format/limits.ts'

export class SessionFile {
  readonly #handle: FileHandle
  #size = 0

  private constructor(handle: FileHandle) {
    this.#handle = handle
  }

  /** Creates the file (mode 0600). Throws if a file of that name exists. */
  static async create(path: string): Promise<SessionFile> {
    const handle = await open(path, 'ax', 0o600)
    try {
      await syncDirectory(dirname(path))
    } catch (error) {
      await handle.close()
      throw error
    }
    return new SessionFile(handle)
  }

  /** Number of bytes on the disk. */
  get size(): number {
    return this.#size
  }

  /**
   * Appends all of `parts` and syncs them to the disk. On failure the file keeps its size, and this throws.
   */
  async append(parts: readonly Buffer[]): Promise<void> {
    try {
      const written = await this.#write(parts)
      await this.#handle.datasync()
      this.#size += written
    } catch (error) {
      // Report the first error; recovery cuts a tail that cannot be cut here.
      await this.#handle.truncate(this.#size).catch(() => undefined)
      throw error
    }
  }

  async #write(parts: readonly Buffer[]): Promise<number> {
    let left = [...parts]
    let total = 0
    while (left.length > 0) {
      const { bytesWritten } = await this.#handle.writev(left)
      total += bytesWritten
      left = without(left, bytesWritten)
      if (bytesWritten === 0 && left.length > 0) throw new Error('the disk took no bytes of the recording')
    }
    return total
  }

  close(): Promise<void> {
    return this.#handle.close()
  }
}

/** Returns the parts that remain after `count` bytes were written: writev may stop anywhere. */
function without(parts: Buffer[], count: number): Buffer[] {
  let skip = count
  const left: Buffer[] = []
  for (const part of parts) {
    if (skip >= part.length) skip -= part.length
    else {
      left.push(part.subarray(skip))
      skip = 0
    }
  }
  return left
}

/** Large pieces, so that most groups lie in one piece and need not be joined. */
export const PIECE_LENGTH = 1024 * 1024

/** Reads the bytes of a recording's file from an offset on, for readers and verifiers. */
export function readPieces(path: string, start = 0): ReadStream {
  return createReadStream(path, { highWaterMark: PIECE_LENGTH, start })
}

/**
 * Returns the link that ends at this byte of a recording, in hex, as stored in the file; shorter if the file
 * ends earlier.
 */
export async function linkBefore(directory: string, end: number): Promise<string> {
  const file = await open(join(directory, FILE_NAME), 'r')
  try {
    const link = Buffer.alloc(LINK_LENGTH)
    const { bytesRead } = await file.read(link, 0, LINK_LENGTH, Math.max(0, end - LINK_LENGTH))
    return link.toString('hex', 0, bytesRead)
  } finally {
    await file.close()
  }
}

/** Syncs a folder: a new file survives a power cut only if its folder's entry is on the disk too. */
export const syncDirectory = (path: string): Promise<void> => syncFile(path)

/** Waits until all writes to a file are on the disk, including those of other processes. */
export async function syncFile(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
