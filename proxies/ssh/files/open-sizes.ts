/**
 * How large the files are that a session has open, over all its channels and handles. A write at an offset makes no file
 * larger than where it ends, whatever names and handles the file has. A file that is opened to append grows by what
 * anybody adds to it, and by which names that is done only the target knows (links): so its size is taken for the
 * largest that it can be, if all that was added meanwhile was added to it.
 */
import type { Place } from './places.ts'

/** An open file: the rules go on with it while its content moves. */
export interface OpenFile {
  /** For people. */
  path: string
  place: Place
  writes: boolean
  /** The target ignores offsets. */
  appends: boolean
  /** The largest size it is known to have, or to have got; of one that is appended to, that it can have. */
  size: number
  /** What is added to that. */
  added: number
  /** Requests that make it larger and have no answer. */
  growing: number
  /** Nothing more of its content passes in that direction. */
  refused: { up: boolean; down: boolean }
}

export class OpenSizes {
  readonly #writing = new Set<OpenFile>()
  #appending = 0

  /** To be called before its size is asked. */
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

  /** Something is written that ends there. */
  reached(end: number): void {
    if (this.#appending === 0) return
    for (const file of this.#writing) if (file.appends) reach(file, end)
  }

  /** So many bytes are added to one of them. */
  appended(bytes: number): void {
    for (const file of this.#writing) if (file.appends) file.added += bytes
  }

  /** Those that are open to be written. */
  get writing(): Iterable<OpenFile> {
    return this.#writing
  }
}

function reach(file: OpenFile, end: number): void {
  file.size = Math.max(file.size, end - file.added)
}
