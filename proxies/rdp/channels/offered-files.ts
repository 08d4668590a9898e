/**
 * Lists of files that one side of the clipboard has offered, found by lock. A list locked by the other side
 * stays unchanged when a newer list is offered.
 */
import type { ClipboardFile } from '../codec/cliprdr.ts'

/** Locked lists. */
const LOCK_LIMIT = 64
/** Files in all lists; beyond this the oldest locks are dropped. */
const FILES_LIMIT = 20_000

/** An offered list; its files are known once the other side has received them. */
export interface FileList {
  files: readonly ClipboardFile[]
}

export class OfferedFiles {
  #last: FileList = { files: [] }
  readonly #locks = new Map<number, FileList>()

  /** The most recently offered list. */
  get last(): FileList {
    return this.#last
  }

  /** Replaces the last list with a new one. */
  offer(): void {
    this.#last = { files: [] }
  }

  /** Stores the files of a list that the other side has received. */
  give(list: FileList, files: readonly ClipboardFile[]): void {
    list.files = files
    for (const id of this.#locks.keys()) {
      const lists = new Set([...this.#locks.values(), this.#last])
      if ([...lists].reduce((sum, one) => sum + one.files.length, 0) <= FILES_LIMIT) return
      this.#locks.delete(id)
    }
  }

  /** Locks the last list under this id. Returns false if there are too many locks. */
  lock(id: number): boolean {
    if (this.#locks.size === LOCK_LIMIT) return false
    this.#locks.set(id, this.#last)
    return true
  }

  /** Returns false if the id is not locked. */
  unlock(id: number): boolean {
    return this.#locks.delete(id)
  }

  /**
   * Finds a file in the list locked under this id, or in the last list without one: xrdp sends lock 0 and
   * means the last list.
   */
  find(lock: number | undefined, index: number): ClipboardFile | undefined {
    const list = (lock === undefined ? undefined : this.#locks.get(lock)) ?? this.#last
    return list.files[index]
  }
}
