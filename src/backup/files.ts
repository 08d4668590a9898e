/**
 * Files of a backup: copied with their SHA-256, on the disk when a function resolves, and read only from
 * folders that other users could not change.
 */
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, lstat, mkdir, open } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { syncDirectory } from '../../recordings/container/session-file.ts'

/** Bytes in memory at a time. */
const PIECE_LENGTH = 1024 * 1024

/** A fault of a backup, described for its user. */
export class BackupError extends Error {
  override readonly name = 'BackupError'
}

export interface Copied {
  size: number
  /** SHA-256 in hex. */
  sha256: string
}

/** Owner of new files. Absent for the current user. */
export interface Owner {
  uid: number
  gid: number
}

export interface CopyOptions {
  /** Bytes from the beginning. Absent for all. */
  length?: number
  owner?: Owner | undefined
}

/**
 * Copies a file into a new one, mode 0600, and waits for the disk. Follows no symbolic link.
 * @throws BackupError if it is not a regular file
 */
export async function copyFile(source: string, target: string, options: CopyOptions = {}): Promise<Copied> {
  const from = await openRegular(source)
  try {
    const to = await open(target, 'wx', 0o600)
    try {
      const copied = await pour(from, to, options.length)
      if (options.owner) await to.chown(options.owner.uid, options.owner.gid)
      await to.sync()
      return copied
    } finally {
      await to.close()
    }
  } finally {
    await from.close()
  }
}

/** Returns size and SHA-256 of a file. */
export async function measure(path: string): Promise<Copied> {
  const file = await openRegular(path)
  try {
    return await pour(file)
  } finally {
    await file.close()
  }
}

async function pour(from: FileHandle, to?: FileHandle, length = Number.POSITIVE_INFINITY): Promise<Copied> {
  const hash = createHash('sha256')
  const piece = Buffer.allocUnsafe(PIECE_LENGTH)
  let size = 0
  while (size < length) {
    const { bytesRead } = await from.read(piece, 0, Math.min(piece.length, length - size), size)
    if (bytesRead === 0) break
    const bytes = piece.subarray(0, bytesRead)
    hash.update(bytes)
    for (let written = 0; to && written < bytesRead; ) {
      written += (await to.write(bytes, written, bytesRead - written)).bytesWritten
    }
    size += bytesRead
  }
  return { size, sha256: hash.digest('hex') }
}

/** Reads a whole small file. @throws BackupError if it is longer than `limit`, or not a regular file */
export async function readSmall(path: string, limit: number): Promise<Buffer> {
  const file = await openRegular(path)
  try {
    const { size } = await file.stat()
    if (size > limit) throw new BackupError(`${path} has ${size} bytes, expected at most ${limit}`)
    const bytes = Buffer.alloc(size)
    const { bytesRead } = await file.read(bytes, 0, size, 0)
    return bytes.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

/** Writes a new file, mode 0600, and waits for the disk. */
export async function writeNewFile(path: string, content: string | Uint8Array, owner?: Owner): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(content)
    if (owner) await file.chown(owner.uid, owner.gid)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function openRegular(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ELOOP') throw new BackupError(`${path} is a symbolic link, expected a file`)
      throw error
    },
  )
  if ((await file.stat()).isFile()) return file
  await file.close()
  throw new BackupError(`${path} is no regular file`)
}

/** Makes the missing folders of `path` below `root`, 0700, each entry on the disk. */
export async function makeFolders(root: string, path: string, owner?: Owner): Promise<string> {
  let folder = root
  for (const name of path.split(sep)) {
    const parent = folder
    folder = join(folder, name)
    const isNew = await mkdir(folder, { mode: 0o700 }).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'EEXIST') return false
        throw error
      },
    )
    if (isNew && owner) await chownFolder(folder, owner)
    if (isNew) await syncDirectory(parent)
  }
  return folder
}

async function chownFolder(path: string, { uid, gid }: Owner): Promise<void> {
  const folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    await folder.chown(uid, gid)
  } finally {
    await folder.close()
  }
}

/**
 * A backup's folder, whose folders and files are checked before they are read: only trusted users could write
 * there.
 */
export class TrustedFolder {
  readonly path: string
  readonly #owners: ReadonlySet<number>
  readonly #seen = new Set<string>()

  constructor(path: string, owners: readonly number[]) {
    this.path = path
    this.#owners = new Set(owners)
  }

  /**
   * Returns the path of a file below the folder. It is a regular file, below folders only, all of them
   * writable by trusted users only.
   * @throws BackupError
   */
  async file(relative: string): Promise<string> {
    const path = join(this.path, relative)
    await this.#folder(dirname(path))
    await this.#require(path, 'file')
    return path
  }

  async #folder(path: string): Promise<void> {
    if (this.#seen.has(path)) return
    if (path !== this.path) await this.#folder(dirname(path))
    await this.#require(path, 'folder')
    // Each recording has its own folder: only the folders above repeat.
    if (this.#seen.size < MAX_SEEN) this.#seen.add(path)
  }

  async #require(path: string, kind: 'file' | 'folder'): Promise<void> {
    const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') throw new BackupError(`${path} is missing`)
      throw error
    })
    if (kind === 'file' ? !found.isFile() : !found.isDirectory()) {
      const is = found.isSymbolicLink() ? 'a symbolic link' : 'something else'
      throw new BackupError(`${path} is ${is}, expected a ${kind}`)
    }
    if (!this.#owners.has(found.uid)) {
      throw new BackupError(
        `${path} belongs to another user (${found.uid}), who may have changed it: if you trust it, chown -R ${process.geteuid?.()} ${this.path}`,
      )
    }
    if ((found.mode & 0o022) !== 0) {
      const mode = (found.mode & 0o777).toString(8)
      throw new BackupError(
        `${path} can be written by others (mode ${mode}): if you trust it, chmod -R go-w ${this.path}`,
      )
    }
  }
}

const MAX_SEEN = 10_000
