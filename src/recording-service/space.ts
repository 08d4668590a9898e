/** Watches the free space under the recordings, to say so long before sessions end for want of it. */
import { statfs } from 'node:fs/promises'
import type { Audit } from '../audit/events/catalogue.ts'

/** Milliseconds between two looks. */
export const SPACE_INTERVAL_MS = 10_000
/** There is room again when there is a tenth more than the alarm: one that comes and goes makes no flood. */
const ROOM_AGAIN = 1.1

/** Bytes that are free for ordinary users on the folder's volume. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

export class SpaceWatch {
  readonly #folder: string
  readonly #alarm: number
  readonly #minimum: number
  readonly #audit: Pick<Audit, 'record'>
  readonly #free: typeof freeBytes
  #isLow = false

  /** `alarm` and `minimum` in bytes: below the one it is told, below the other sessions end. */
  constructor(
    { folder, alarm, minimum }: { folder: string; alarm: number; minimum: number },
    audit: Pick<Audit, 'record'>,
    free = freeBytes,
  ) {
    this.#folder = folder
    this.#alarm = alarm
    this.#minimum = minimum
    this.#audit = audit
    this.#free = free
  }

  /** Throws when the volume cannot be asked, or the event not be written: then it is tried again with the next look. */
  async look(): Promise<void> {
    const free = await this.#free(this.#folder)
    if (free >= this.#alarm * ROOM_AGAIN) this.#isLow = false
    if (free >= this.#alarm || this.#isLow) return
    await this.#audit.record('recording.space', {
      object: this.#folder,
      size: free,
      reason: `below ${this.#minimum} bytes sessions end and none begin: make room`,
    })
    this.#isLow = true
  }
}
