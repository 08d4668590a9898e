/**
 * The floor of free space below the recordings. A recording fails at the floor, while there is still room for
 * its end.
 */
import { statfs } from 'node:fs/promises'

/** Interval, and number of bytes, between two checks of the volume. */
const CHECK_MICROSECONDS = 2_000_000
const CHECK_BYTES = 16 * 1024 * 1024

/** The volume has less free space than required. */
export class NoSpaceError extends Error {
  override name = 'NoSpaceError'
}

/** Throws NoSpaceError if the folder's volume has less than `minimumFree` bytes left for ordinary users. */
export async function requireSpace(directory: string, minimumFree: number): Promise<void> {
  const { bavail, bsize } = await statfs(directory)
  const free = bavail * bsize
  if (free >= minimumFree) return
  throw new NoSpaceError(
    `expected ${minimumFree} bytes free for recordings in ${directory}, there are ${free}: make room, or lower min_free`,
  )
}

export class FreeSpace {
  readonly #directory: string
  readonly #minimumFree: number
  #time = 0
  #size = 0

  constructor(directory: string, minimumFree: number) {
    this.#directory = directory
    this.#minimumFree = minimumFree
  }

  /** Calls `requireSpace` if a check is due, by `time` in microseconds and `size` of the file in bytes. */
  async check(time: number, size: number): Promise<void> {
    if (time - this.#time < CHECK_MICROSECONDS && size - this.#size < CHECK_BYTES) return
    this.#time = time
    this.#size = size
    await requireSpace(this.#directory, this.#minimumFree)
  }
}
