/** The floor of free space under the recordings: below it a recording fails while there is room for its end. */
import { statfs } from 'node:fs/promises'

/** How often, and after how many bytes, the volume is looked at. */
const CHECK_MICROSECONDS = 2_000_000
const CHECK_BYTES = 16 * 1024 * 1024

/** There is less free space than there has to be. */
export class NoSpaceError extends Error {
  override name = 'NoSpaceError'
}

/** Throws NoSpaceError when the folder's volume has less than `minimumFree` bytes left for ordinary users. */
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

  /** As `requireSpace`, when it is due; `time` in microseconds and `size` of the file in bytes say whether it is. */
  async check(time: number, size: number): Promise<void> {
    if (time - this.#time < CHECK_MICROSECONDS && size - this.#size < CHECK_BYTES) return
    this.#time = time
    this.#size = size
    await requireSpace(this.#directory, this.#minimumFree)
  }
}
