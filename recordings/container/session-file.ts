/**
 * A recording's file on this machine's disk: appended bytes are on the disk when `append` resolves, or the
 * file is cut back to its previous size.
 */
import { Buffer } from 'node:buffer'
import { createReadStream, type ReadStream } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { FILE_NAME, LINK_LENGTH } from './format/limits.ts'
import { FreeSpace, requireSpace } from './free-space.ts'
import type { Appended, RecordingFile } from './recording-file.ts'

export interface SessionFileOptions {
  /** Free space on the volume, in bytes, below which recording fails. */
  minimumFree: number
  /** Milliseconds, never decreasing. Absent for the system's clock. */
  monotonic?: () => number
}

export class SessionFile implements RecordingFile {
  readonly #handle: FileHandle
  readonly #space: FreeSpace
  readonly #monotonic: () => number
  #size = 0

  private constructor(handle: FileHandle, directory: string, options: SessionFileOptions) {
    this.#handle = handle
    this.#monotonic = options.monotonic ?? (() => performance.now())
    this.#space = new FreeSpace(directory, options.minimumFree, this.#monotonic())
  }

  /**
   * Creates `session.rec` (mode 0600) in the folder, with its first bytes on the disk. Throws if the volume is
   * too full, and if the file exists; otherwise removes it on failure.
   */
  static async create(
    directory: string,
    first: readonly Uint8Array[],
    options: SessionFileOptions,
  ): Promise<SessionFile> {
    await requireSpace(directory, options.minimumFree)
    const path = join(directory, FILE_NAME)
    const handle = await open(path, 'ax', 0o600)
    try {
      await syncDirectory(directory)
      const file = new SessionFile(handle, directory, options)
      await file.#put(first)
      return file
    } catch (error) {
      await handle.close()
      await rm(path)
      throw error
    }
  }

  /** Set when bytes of a failed write could not be cut off. */
  #isTorn = false

  /** Number of bytes on the disk. */
  get size(): number {
    return this.#size
  }

  /** Refuses an append that does not begin at the file's end: one was lost, or comes twice. */
  async append(offset: number, parts: readonly Uint8Array[]): Promise<Appended> {
    if (offset !== this.#size) {
      throw new Error(`expected an append at byte ${this.#size} of the recording, got one at ${offset}`)
    }
    if (this.#isTorn) throw new Error('the recording has a torn end, which could not be cut off')
    await this.#put(parts)
    const fault = await this.#space.fault(this.#monotonic(), this.#size)
    return fault ? { fault } : {}
  }

  async #put(parts: readonly Uint8Array[]): Promise<void> {
    try {
      const written = await this.#write(parts)
      await this.#handle.datasync()
      this.#size += written
    } catch (error) {
      // Throw the error of the write, also if cutting fails; recovery cuts the tail then, and nothing may follow it.
      await this.#handle.truncate(this.#size).catch(() => {
        this.#isTorn = true
      })
      throw error
    }
  }

  async #write(parts: readonly Uint8Array[]): Promise<number> {
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
function without(parts: Uint8Array[], count: number): Uint8Array[] {
  let skip = count
  const left: Uint8Array[] = []
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
    return await linkIn(file, end)
  } finally {
    await file.close()
  }
}

/** Returns the size of a recording's file, 0 if there is none, and its last link, in hex, as stored in the file. */
export async function endOfFile(directory: string): Promise<{ size: number; link: string }> {
  let file: FileHandle
  try {
    file = await open(join(directory, FILE_NAME), 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { size: 0, link: '' }
    throw error
  }
  try {
    const { size } = await file.stat()
    return { size, link: await linkIn(file, size) }
  } finally {
    await file.close()
  }
}

async function linkIn(file: FileHandle, end: number): Promise<string> {
  const link = Buffer.alloc(LINK_LENGTH)
  const { bytesRead } = await file.read(link, 0, LINK_LENGTH, Math.max(0, end - LINK_LENGTH))
  return link.toString('hex', 0, bytesRead)
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
