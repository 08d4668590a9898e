/**
 * The floor of free space below the recordings. A recording fails at the floor, while there is still room for
 * its end.
 */
import { statfs } from 'node:fs/promises'
import { type Appended, NoSpaceError } from './recording-file.ts'

/** Interval, and number of bytes, between two checks of the volume. */
const CHECK_MILLISECONDS = 2000
const CHECK_BYTES = 16 * 1024 * 1024

/** Throws NoSpaceError if the folder's volume has less than `minimumFree` bytes left for ordinary users. */
export async function requireSpace(directory: string, minimumFree: number): Promise<void> {
  const { bavail, bsize } = await statfs(directory)
  const free = bavail * bsize
  if (free >= minimumFree) return
  throw new NoSpaceError(
    `the disk is full: expected ${minimumFree} bytes free for recordings in ${directory}, there are ${free}: make room, or lower min_free`,
  )
}

export class FreeSpace {
  readonly #directory: string
  readonly #minimumFree: number
  #time: number
  #size = 0

  /** `time` is that of a check before the file was created. */
  constructor(directory: string, minimumFree: number, time: number) {
    this.#directory = directory
    this.#minimumFree = minimumFree
    this.#time = time
  }

  /** Returns the fault of the volume if a check is due, by `time` in milliseconds and `size` of the file. */
  async fault(time: number, size: number): Promise<Appended['fault']> {
    if (time - this.#time < CHECK_MILLISECONDS && size - this.#size < CHECK_BYTES) return undefined
    this.#time = time
    this.#size = size
    try {
      await requireSpace(this.#directory, this.#minimumFree)
      return undefined
    } catch (error) {
      const { message } = error as Error
      return { message, isNoSpace: error instanceof NoSpaceError }
    }
  }
}
