/**
 * Writes the log of the database back into its file in a separate thread. SQLite would do so after a commit,
 * in the event loop: all sessions would wait for the disk meanwhile
 * (https://sqlite.org/wal.html#ckpt). A checkpoint blocks neither readers nor commits.
 */
import { programBeside, Thread } from '../../threads/thread.ts'

/** Syncs of the log from which on it is written back. */
export const SYNCS = 64
/**
 * Pages of the log from which on a commit writes it back itself: the thread is behind, or has failed. Short as
 * a rule, since the thread has written most. About 64 MiB.
 */
export const LONG_LOG_PAGES = 16_384
/** The thread ends when this much time has passed without a checkpoint: memory of its own is the price. */
const IDLE_MS = 60_000

export class Checkpoints {
  readonly #thread: Thread<'write back', 'written back'>
  readonly #idle: NodeJS.Timeout
  #syncs = 0
  #isRunning = false
  #isClosed = false

  /** `path`: the database file. */
  constructor(path: string) {
    this.#thread = new Thread('checkpoint', {
      program: programBeside(import.meta.url, 'checkpoint-worker'),
      workerData: () => ({ path }),
      onAnswer: () => {
        this.#isRunning = false
        this.#idle.refresh()
      },
      onLost: () => {
        this.#isRunning = false
      },
    })
    this.#idle = setTimeout(() => void this.#thread.destroy(), IDLE_MS).unref()
  }

  /** Counts a sync of the log. A thread that cannot start is no error: the commits are on the disk. */
  synced(): void {
    this.#syncs++
    if (this.#syncs < SYNCS || this.#isRunning || this.#isClosed) return
    this.#syncs = 0
    try {
      this.#thread.post('write back')
      this.#isRunning = true
    } catch {
      // The system has no room for a thread: a commit writes the log back when it is long.
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#idle)
    await this.#thread.destroy()
  }
}
