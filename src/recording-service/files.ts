/**
 * The files of running recordings: proxies send the bytes, the broker writes them. A proxy can append to the
 * recordings of its own sessions; it can neither read nor change nor cut what is there.
 */
import { type Appended, MAX_APPEND, MAX_APPEND_PARTS } from '../../recordings/container/recording-file.ts'
import { SessionFile } from '../../recordings/container/session-file.ts'

/** Bytes of all sessions that may wait for the disk. An append beyond them fails, and so does its recording. */
export const MAX_IN_FLIGHT = 256 * 1024 * 1024
/** Bytes that a recording may append after a fault of its volume: the backlog of its writer, and its end. */
export const MAX_AFTER_FAULT = 32 * 1024 * 1024

interface Open {
  /** Absent until the file is created. */
  file?: SessionFile
  /** Resolves when the disk has finished; absent if it has nothing to do. */
  busy?: Promise<void>
  /** Set when no more appends are accepted. */
  closed?: Promise<void>
  /** Bytes that may follow, once the volume has shown a fault. */
  left: number
}

export interface RecordingFilesOptions {
  /** Free space, in bytes, below which nothing is recorded. */
  minimumFree: number
}

export class RecordingFiles {
  readonly #options: RecordingFilesOptions
  readonly #open = new Map<string, Open>()
  #inFlight = 0

  constructor(options: RecordingFilesOptions) {
    this.#options = options
  }

  /** Creates a session's file with its first bytes. Throws the disk's errors. */
  async begin(session: string, directory: string, parts: readonly Uint8Array[]): Promise<void> {
    if (this.#open.has(session)) throw new Error('expected the beginning of this recording only once')
    const open: Open = { left: Number.POSITIVE_INFINITY }
    this.#open.set(session, open)
    await this.#write(open, parts, async () => {
      open.file = await SessionFile.create(directory, parts, this.#options)
    })
  }

  /** Appends to a session's file. Throws the disk's errors, and if the file accepts no such append now. */
  async append(session: string, offset: number, parts: readonly Uint8Array[]): Promise<Appended> {
    const open = this.#open.get(session)
    const file = open?.file
    if (!open || !file || open.closed) throw new Error('expected a recording that is open, to append to it')
    if (open.busy) throw new Error('expected one append to a recording at a time')
    const bytes = lengthOf(parts)
    if (bytes > open.left) throw new Error(`expected the end of the recording, got ${bytes} bytes more`)
    const appended = await this.#write(open, parts, () => file.append(offset, parts))
    open.left -= bytes
    if (appended.fault) open.left = Math.min(open.left, MAX_AFTER_FAULT)
    return appended
  }

  /** Accepts no more appends. Resolves when the disk has finished and the file is closed. */
  async close(session: string): Promise<void> {
    const open = this.#open.get(session)
    if (!open) return
    open.closed ??= (open.busy ?? Promise.resolve()).then(() => open.file?.close())
    await open.closed
  }

  /** Releases the state of a session that has ended, without waiting for the disk. */
  onClosed(session: string): void {
    this.refuse(session)
    this.#open.delete(session)
  }

  /** Accepts no more appends, without waiting for the disk. */
  refuse(session: string): void {
    // The end is accounted for by the bytes that are there.
    this.close(session).catch(() => undefined)
  }

  async #write<Result>(
    open: Open,
    parts: readonly Uint8Array[],
    work: () => Promise<Result>,
  ): Promise<Result> {
    const bytes = lengthOf(parts)
    if (bytes > MAX_APPEND || parts.length > MAX_APPEND_PARTS) {
      throw new Error(`expected at most ${MAX_APPEND} bytes in an append to a recording, got ${bytes}`)
    }
    if (this.#inFlight + bytes > MAX_IN_FLIGHT) {
      throw new Error(`the disk is slower than the sessions: ${this.#inFlight} bytes are waiting`)
    }
    this.#inFlight += bytes
    const writing = work()
    open.busy = writing.then(
      () => undefined,
      () => undefined,
    )
    try {
      return await writing
    } finally {
      this.#inFlight -= bytes
      delete open.busy
    }
  }
}

function lengthOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0)
}
