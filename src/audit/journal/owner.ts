/**
 * The owner of a journal: the process that writes it or stores it in the audit log. A kernel lock that dies with the
 * process says whether it lives (SQLite's exclusive transaction on a file of its own; a pid could by now be another
 * program's).
 * The lock is POSIX's: opening and closing the file anywhere else in the owner's process, by reading it, drops it.
 */
import { rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

export interface Ownership {
  /** Leaves the journal to other processes. */
  release(): void
  /** Does the same for one that is no more. */
  remove(): void
}

/** Becomes the owner by the lock file at `path`. Returns undefined while another process is. */
export function takeOwnership(path: string): Ownership | undefined {
  const lock = new DatabaseSync(path)
  try {
    // Nothing is written, and no file of SQLite's own lies beside it.
    lock.exec('pragma journal_mode = memory; begin exclusive')
  } catch (error) {
    lock.close()
    if (/locked/.test(String(error))) return undefined
    throw error
  }
  const release = () => {
    if (lock.isOpen) lock.close()
  }
  return {
    release,
    remove() {
      rmSync(path, { force: true })
      release()
    },
  }
}
