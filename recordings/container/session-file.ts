/**
 * A recording's file as its writer sees it: bytes go to its end and are on the disk when `append` resolves, or
 * the file is cut back to where it was.
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

  /** Makes the file (mode 0600); throws when there is one of that name already. */
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

  /** Bytes that are on the disk. */
  get size(): number {
    return this.#size
  }

  /** Appends all of `parts` and waits for the disk. When that fails the file keeps its size, and this throws. */
  async append(parts: readonly Buffer[]): Promise<void> {
    try {
      const written = await this.#write(parts)
      await this.#handle.datasync()
      this.#size += written
    } catch (error) {
      // The first error is the one to tell; a tail that cannot be cut here is cut by the recovery.
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

/** The parts that remain after `count` bytes of them were written: writev may stop anywhere. */
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

/** Large pieces, so that most groups lie in one of them and need not be put together. */
export const PIECE_LENGTH = 1024 * 1024

/** The bytes of a recording's file from an offset on, for readers and verifiers. */
export function readPieces(path: string, start = 0): ReadStream {
  return createReadStream(path, { highWaterMark: PIECE_LENGTH, start })
}

/**
 * The link that ends at this byte of a recording, in hex, by what the file says of itself; less where the file has no
 * such byte.
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

/** A new file survives a power cut only when its folder's entry is on the disk too. */
export const syncDirectory = (path: string): Promise<void> => syncFile(path)

/** Waits until what was written to it is on the disk, by whomever. */
export async function syncFile(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
