/**
 * Syncs commits to the disk without blocking the event loop. In WAL mode with `synchronous=normal` a commit
 * writes to the write-ahead log and does not sync it; SQLite's `full` differs only in that sync, which blocks
 * the whole process for as long as the disk needs. Here libuv's threads sync, before the commit is reported:
 * reported commits are on the disk, as with `full` (https://sqlite.org/pragma.html#pragma_synchronous).
 *
 * The log keeps its file while the database is open, and locks are held on other files, so opening it here
 * breaks none.
 */
import { type FileHandle, open } from 'node:fs/promises'
import type { Checkpoints } from './checkpoints.ts'

export class WalSync {
  readonly #path: string
  readonly #checkpoints: Checkpoints | undefined
  #file: FileHandle | undefined
  #failure: Error | undefined
  #running: Promise<void> | undefined
  #next: Promise<void> | undefined

  /** `database`: the path of the database file. Without `checkpoints` SQLite's commits write the log back. */
  constructor(database: string, checkpoints?: Checkpoints) {
    this.#path = `${database}-wal`
    this.#checkpoints = checkpoints
  }

  /** @throws Error if an earlier commit may not be on the disk: the state after a failed sync is not known */
  requireSound(): void {
    if (this.#failure === undefined) return
    throw new Error(`the database could not be written to the disk (${this.#failure.message}): start again`, {
      cause: this.#failure,
    })
  }

  /** Resolves when all commits so far are on the disk. Commits during a sync share the next one. */
  sync(): Promise<void> {
    if (this.#running === undefined) return this.#begin()
    this.#next ??= this.#running.then(
      () => this.#begin(),
      () => this.requireSound(),
    )
    return this.#next
  }

  #begin(): Promise<void> {
    this.#next = undefined
    const running = this.#sync().finally(() => {
      if (this.#running === running) this.#running = undefined
    })
    this.#running = running
    return running
  }

  async #sync(): Promise<void> {
    // Check again for a transaction that began before the failure: its pages are useless after lost ones.
    this.requireSound()
    try {
      this.#file ??= await open(this.#path, 'r')
      await this.#file.datasync()
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error(String(error))
      this.requireSound()
    }
    this.#checkpoints?.synced()
  }

  async close(): Promise<void> {
    await (this.#next ?? this.#running)?.catch(() => undefined)
    await this.#checkpoints?.close()
    await this.#file?.close()
    this.#file = undefined
  }
}
