/**
 * The groups of one recording from their sealing to the disk, in their order. A large group is sealed on the
 * sealing thread, and the groups after it wait for it.
 */
import type { KeyObject } from 'node:crypto'
import { type CollectedGroup, releaseBytes, reuse, sealGroup } from './format/group.ts'
import { MAX_BATCH, MAX_BATCH_GROUPS } from './format/limits.ts'
import { HeldBytes, type Sealed } from './held.ts'
import type { RecordingSealer, Sealer } from './sealing/sealer.ts'

/** Bytes from which a group is sealed on the thread: below, the messages cost more than they save. */
export const THREADED = 32 * 1024
/** Sealed bytes for which the disk need not wait for the thread: a signature for each group costs too much. */
const ENOUGH = 1024 * 1024

export interface SealedGroup extends Sealed {
  /** Bytes that the group adds to the backlog. */
  weight: number
  frames: number
  last: number
}

interface Waiting {
  weight: number
  frames: number
  last: number
  /** Absent while the thread has the group. */
  sealed?: Sealed
}

export interface GroupQueueOptions {
  key: KeyObject
  /** Absent if all groups are sealed on the caller's thread. */
  sealer: Sealer | undefined
  /** Called when groups are due (`isDue`). */
  onDue: () => void
  /** Called once if a group is lost: it and those after it are dropped, and none may follow. */
  onLost: (error: Error) => void
}

export class GroupQueue {
  readonly #options: GroupQueueOptions
  #sealer: RecordingSealer | undefined
  #waiting: Waiting[] = []
  /** Groups that the thread has. */
  #sealing = 0
  #onSettled: (() => void) | undefined
  #added = 0
  #bytes = 0
  #isLost = false

  constructor(options: GroupQueueOptions) {
    this.#options = options
  }

  /** Number of groups added so far. */
  get added(): number {
    return this.#added
  }

  /** Bytes of the groups that are not reported as written. */
  get bytes(): number {
    return this.#bytes
  }

  /** Whether the first groups are sealed and should be written: enough of them, or all. */
  get isDue(): boolean {
    if (this.#sealing === 0) return this.#waiting.length > 0
    let bytes = 0
    for (const { sealed, weight } of this.#waiting) {
      if (!sealed) return false
      bytes += weight
      if (bytes >= ENOUGH) return true
    }
    return false
  }

  /** Seals a group as the next one, now or on the thread. The group belongs to the queue. */
  add(group: CollectedGroup, compress: boolean): void {
    const { plain, frames, last } = group
    const { key, sealer } = this.#options
    const weight = plain.length
    const number = this.#added++
    const waiting: Waiting = { weight, frames, last }
    this.#bytes += weight
    this.#waiting.push(waiting)
    const sealing = sealer && weight >= THREADED ? this.#onThread(sealer, number, group, compress) : undefined
    if (sealing) {
      this.#sealing++
      sealing.then(
        (sealed) => this.#sealed(waiting, sealed),
        (error: Error) => this.#lost(waiting, error),
      )
      return
    }
    waiting.sealed = sealGroup(key, number, group, compress)
    reuse(plain.buffer as ArrayBuffer)
    if (this.isDue) this.#options.onDue()
  }

  /** Returns undefined if the thread cannot be started: the group is sealed here. */
  #onThread(
    sealer: Sealer,
    number: number,
    group: CollectedGroup,
    compress: boolean,
  ): Promise<Sealed> | undefined {
    try {
      this.#sealer ??= sealer.recording(this.#options.key)
      return this.#sealer.seal(number, group, compress)
    } catch {
      return undefined
    }
  }

  /** Removes and returns the first groups that are sealed, at most as many as one append holds. */
  batch(): SealedGroup[] {
    return this.#waiting
      .splice(0, this.#batchLength())
      .map(({ sealed, ...group }) => ({ ...group, ...(sealed as Sealed) }))
  }

  /** Whether one append holds all groups. */
  get isLastBatch(): boolean {
    return this.#batchLength() === this.#waiting.length
  }

  /** Counts groups as written, and releases their memory. */
  written(groups: readonly SealedGroup[]): void {
    for (const { weight } of groups) this.#bytes -= weight
    const parts = groups.flatMap(({ body }) => body)
    const held = parts.filter((part) => part instanceof HeldBytes)
    if (held.length > 0) this.#sealer?.release(held)
    for (const part of parts) if (!(part instanceof HeldBytes)) releaseBytes(part)
  }

  /** Resolves when the thread has none of the groups. */
  async settled(): Promise<void> {
    if (this.#sealing === 0) return
    await new Promise<void>((resolve) => {
      this.#onSettled = resolve
    })
  }

  /** Drops all groups. */
  clear(): void {
    this.#waiting = []
  }

  /** Has the key and what is held wiped on the thread. No group may follow, and none be written. */
  close(): void {
    this.#sealer?.close()
  }

  #batchLength(): number {
    let bytes = 0
    const end = this.#waiting.findIndex(({ weight, sealed }, i) => {
      bytes += weight
      return sealed === undefined || (i > 0 && bytes > MAX_BATCH) || i === MAX_BATCH_GROUPS
    })
    return end === -1 ? this.#waiting.length : end
  }

  #sealed(waiting: Waiting, sealed: Sealed): void {
    waiting.sealed = sealed
    this.#settle()
  }

  #lost(waiting: Waiting, error: Error): void {
    const at = this.#waiting.indexOf(waiting)
    const dropped = at === -1 ? [] : this.#waiting.splice(at)
    for (const { weight } of dropped) this.#bytes -= weight
    if (!this.#isLost) {
      this.#isLost = true
      this.#options.onLost(error)
    }
    this.#settle()
  }

  #settle(): void {
    this.#sealing--
    if (this.isDue) this.#options.onDue()
    if (this.#sealing === 0) this.#onSettled?.()
  }
}
