/** Watches the free space below the recordings, and warns long before a lack of it ends sessions. */
import { statfs } from 'node:fs/promises'
import type { Audit } from '../audit/events/catalogue.ts'

/** Milliseconds between two checks. */
export const SPACE_INTERVAL_MS = 10_000
/** Factor above the alarm at which it ends: avoids a flood of events when the space varies. */
const ROOM_AGAIN = 1.1

/** Returns the bytes that are free for ordinary users on the folder's volume. */
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
  #isFull = false

  /** `alarm` and `minimum` in bytes: the first raises the event, the second ends sessions. */
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

  /** Whether there was no room for a session at the last look. */
  get isFull(): boolean {
    return this.#isFull
  }

  /** Throws if the volume cannot be read, or the event not be written; the next check tries again. */
  async look(): Promise<void> {
    const free = await this.#free(this.#folder)
    this.#isFull = free < this.#minimum
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
