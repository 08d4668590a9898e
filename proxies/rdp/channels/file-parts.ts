/** Transfers of clipboard files in parts: outstanding requests, and the bytes sent of each file. */
import type { ClipboardFile, FileContentsRequest } from '../codec/cliprdr.ts'

/** Outstanding requests; peers send a few at a time. */
const PENDING_LIMIT = 256

export class FileParts {
  readonly #onGone: (file: ClipboardFile, bytes: number) => void
  #asked: { stream: number; kind: FileContentsRequest['kind']; file: ClipboardFile }[] = []
  /** Bytes not reported yet. */
  readonly #gone = new Map<ClipboardFile, number>()
  /** Files reported once: the rest follows at `end`, for at most two events per file. */
  readonly #told = new Set<ClipboardFile>()

  /** `onGone` receives the bytes sent of a file: all of it, unless the transfer was cut short. */
  constructor(onGone: (file: ClipboardFile, bytes: number) => void) {
    this.#onGone = onGone
  }

  /** Adds a request for a part or the size of a file. Returns false if too many are outstanding. */
  ask(file: ClipboardFile, { stream, kind }: FileContentsRequest): boolean {
    if (this.#asked.length === PENDING_LIMIT) return false
    this.#asked.push({ stream, kind, file })
    return true
  }

  /** Removes and returns the request with this stream id, or undefined if there is none. */
  answer(stream: number): { kind: FileContentsRequest['kind']; file: ClipboardFile } | undefined {
    const place = this.#asked.findIndex((asked) => asked.stream === stream)
    return place === -1 ? undefined : this.#asked.splice(place, 1)[0]
  }

  /** Counts forwarded bytes of a file. */
  pass(file: ClipboardFile, bytes: number): void {
    const together = (this.#gone.get(file) ?? 0) + bytes
    this.#gone.set(file, together)
    if (file.size === 0 || together < file.size || this.#told.has(file)) return
    this.#told.add(file)
    this.#tell(file, together)
  }

  /** Reports the remaining bytes: the list of files is replaced, or the channel ends. */
  end(): void {
    for (const [file, bytes] of this.#gone) this.#tell(file, bytes)
    this.#told.clear()
  }

  #tell(file: ClipboardFile, bytes: number): void {
    this.#gone.delete(file)
    this.#onGone(file, bytes)
  }
}
