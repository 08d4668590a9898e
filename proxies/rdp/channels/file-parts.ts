/** Files of one side's clipboard that the other takes in parts: what was asked for, and how much of each has gone. */
import type { ClipboardFile, FileContentsRequest } from '../codec/cliprdr.ts'

/** Parts that have not been answered: peers ask for some at a time. */
const PENDING_LIMIT = 256

export class FileParts {
  readonly #onGone: (file: ClipboardFile, bytes: number) => void
  #asked: { stream: number; kind: FileContentsRequest['kind']; file: ClipboardFile }[] = []
  /** Bytes that have not been told of. */
  readonly #gone = new Map<ClipboardFile, number>()
  /** Their rest comes with the end of the list, so that each has two events at most. */
  readonly #told = new Set<ClipboardFile>()

  /** `onGone`: so many bytes of the file have been given, all of it where nothing is in the way. */
  constructor(onGone: (file: ClipboardFile, bytes: number) => void) {
    this.#onGone = onGone
  }

  /** A part of the file, or its size, is asked for; false: too much is, already. */
  ask(file: ClipboardFile, { stream, kind }: FileContentsRequest): boolean {
    if (this.#asked.length === PENDING_LIMIT) return false
    this.#asked.push({ stream, kind, file })
    return true
  }

  /** What was asked for under this number; undefined: nothing. */
  answer(stream: number): { kind: FileContentsRequest['kind']; file: ClipboardFile } | undefined {
    const place = this.#asked.findIndex((asked) => asked.stream === stream)
    return place === -1 ? undefined : this.#asked.splice(place, 1)[0]
  }

  /** So many bytes of the file pass. */
  pass(file: ClipboardFile, bytes: number): void {
    const together = (this.#gone.get(file) ?? 0) + bytes
    this.#gone.set(file, together)
    if (file.size === 0 || together < file.size || this.#told.has(file)) return
    this.#told.add(file)
    this.#tell(file, together)
  }

  /** Another list takes the place of the one that they are in, or nothing follows. */
  end(): void {
    for (const [file, bytes] of this.#gone) this.#tell(file, bytes)
    this.#told.clear()
  }

  #tell(file: ClipboardFile, bytes: number): void {
    this.#gone.delete(file)
    this.#onGone(file, bytes)
  }
}
