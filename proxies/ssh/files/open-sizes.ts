/**
 * The sizes of a session's open files, over all its channels and handles. A write at an offset makes no file
 * larger than its own end, whatever names and handles the file has. A file opened to append grows by every
 * write to it, and only the target knows through which names (links) these writes arrive. So its size is
 * assumed to be the largest possible, as if all data appended meanwhile went to this file.
 */
import type { Place } from './places.ts'

/** An open file: rules continue to apply while its content is transferred. */
export interface OpenFile {
  /** For display. */
  path: string
  place: Place
  writes: boolean
  /** The target ignores offsets. */
  appends: boolean
  /** The largest size known or reached; for a file opened to append, the largest possible. */
  size: number
  /** Bytes appended since. */
  added: number
  /** Requests under way that enlarge the file. */
  growing: number
  /** Directions in which no more of the content is forwarded. */
  refused: { up: boolean; down: boolean }
}

export class OpenSizes {
  readonly #writing = new Set<OpenFile>()
  #appending = 0

  /** Call before asking the target for the size. */
  begin(file: OpenFile): void {
    if (!file.writes) return
    if (file.appends) {
      this.#appending++
      for (const other of this.#writing) if (other.growing > 0) reach(file, other.size + other.added)
    }
    this.#writing.add(file)
  }

  end(file: OpenFile): void {
    if (this.#writing.delete(file) && file.appends) this.#appending--
  }

  /** Notes a write that ends at this offset. */
  reached(end: number): void {
    if (this.#appending === 0) return
    for (const file of this.#writing) if (file.appends) reach(file, end)
  }

  /** Notes that `bytes` are appended to one of the files. */
  appended(bytes: number): void {
    for (const file of this.#writing) if (file.appends) file.added += bytes
  }

  /** The files that are open for writing. */
  get writing(): Iterable<OpenFile> {
    return this.#writing
  }
}

function reach(file: OpenFile, end: number): void {
  file.size = Math.max(file.size, end - file.added)
}
