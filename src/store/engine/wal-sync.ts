/**
 * Puts commits on the disk without making the event loop wait for it. In WAL mode with `synchronous=normal` a commit
 * writes to the write-ahead log and does not sync it; SQLite's `full` differs in just that sync, which stops the
 * whole process for as long as the disk takes. Here it is done by libuv's threads, before anybody is told that the
 * commit stands: what was answered for is on the disk, as with `full` (https://sqlite.org/pragma.html#pragma_synchronous).
 *
 * The log keeps its file while the database is open, and locks are held on other files, so opening it here breaks none.
 */
import { type FileHandle, open } from 'node:fs/promises'

export class WalSync {
  readonly #path: string
  #file: FileHandle | undefined
  #failure: Error | undefined
  #running: Promise<void> | undefined
  #next: Promise<void> | undefined

  /** `database`: the path of the database file. */
  constructor(database: string) {
    this.#path = `${database}-wal`
  }

  /** @throws Error when an earlier commit may not be on the disk: what a failed sync leaves behind is not known */
  requireSound(): void {
    if (this.#failure === undefined) return
    throw new Error(`the database could not be written to the disk (${this.#failure.message}): start again`, {
      cause: this.#failure,
    })
  }

  /** Resolves when all commits so far are on the disk. Those that come while one sync is under way share the next. */
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
    // for a transaction that began before the failure: its own pages are of no use behind the ones that are lost
    this.requireSound()
    try {
      this.#file ??= await open(this.#path, 'r')
      await this.#file.datasync()
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error(String(error))
      this.requireSound()
    }
  }

  async close(): Promise<void> {
    await (this.#next ?? this.#running)?.catch(() => undefined)
    await this.#file?.close()
    this.#file = undefined
  }
}
