/**
 * Lists of files that one side of the clipboard has offered, and which of them a request means: a list that the other side
 * has locked stays what it was, whatever is offered after it.
 */
import type { ClipboardFile } from '../codec/cliprdr.ts'

/** Lists that the other side may keep. */
const LOCK_LIMIT = 64
/** Files in all of those; above that the oldest is forgotten. */
const FILES_LIMIT = 20_000

/** A list as it was offered; its files are known once it was asked for. */
export interface FileList {
  files: readonly ClipboardFile[]
}

export class OfferedFiles {
  #last: FileList = { files: [] }
  readonly #locks = new Map<number, FileList>()

  /** The last one that was offered. */
  get last(): FileList {
    return this.#last
  }

  /** Another list is offered in its place. */
  offer(): void {
    this.#last = { files: [] }
  }

  /** The list has been given to the other side. */
  give(list: FileList, files: readonly ClipboardFile[]): void {
    list.files = files
    for (const id of this.#locks.keys()) {
      const lists = new Set([...this.#locks.values(), this.#last])
      if ([...lists].reduce((sum, one) => sum + one.files.length, 0) <= FILES_LIMIT) return
      this.#locks.delete(id)
    }
  }

  /** The last list stays what it is under this number; false: too many do. */
  lock(id: number): boolean {
    if (this.#locks.size === LOCK_LIMIT) return false
    this.#locks.set(id, this.#last)
    return true
  }

  /** false: nothing is locked under this number. */
  unlock(id: number): boolean {
    return this.#locks.delete(id)
  }

  /** Of the list that is locked under this number; where none is, xrdp writes 0 and means the last one. */
  find(lock: number | undefined, index: number): ClipboardFile | undefined {
    const list = (lock === undefined ? undefined : this.#locks.get(lock)) ?? this.#last
    return list.files[index]
  }
}
