/**
 * Has each recording indexed after its session has ended: off the hot path, one at a time, in a separate
 * thread. Recordings that a crash or a full queue has left out are found on the disk at the next start, or
 * when the queue is empty. An index is never required: a reader of a recording without one builds it.
 */
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { RecordingError } from '../../../recordings/container/format/error.ts'
import { INDEX_FILE_NAME } from '../../../recordings/container/format/index.ts'
import { KEY_FILE_NAME } from '../../../recordings/container/format/limits.ts'
import { isIndexed } from '../../../recordings/show/index/reader.ts'
import type { Bucket } from '../../../recordings/storage/bucket/bucket.ts'
import { isOfTheStore } from '../../../recordings/storage/bucket/error.ts'
import { findRecording, recordingsIn } from '../../../recordings/storage/catalog.ts'
import type { CatalogEntry } from '../../../recordings/storage/catalog-entry.ts'
import { locally } from '../../../recordings/storage/fetched.ts'
import { Secret } from '../../model/secret.ts'
import type { EndedRecording } from './ended.ts'
import type { ContentsJob, IndexJob } from './messages.ts'
import { QuietTimes } from './quiet.ts'
import { IndexThread } from './thread.ts'

/** Sessions in the queue; further ones are found by searching the folder. */
const MAX_QUEUED = 1000
/** Recordings that could not be indexed; these are not tried again until the next start. */
const MAX_FAILED = 10_000
/** Size from which a recording gets keyframes: a smaller one is drawn faster than an index is stored. */
const KEYFRAMES_FROM = 64 * 1024
/** Time until an object store that failed is tried again. */
const STORE_RETRY_MS = 10 * 60_000

export interface IndexerOptions {
  /** The recordings' folder. */
  root: string
  /**
   * Unwraps the session's key from the bytes of its `key.age`. Throws RecordingError `wrong_key` if it is not
   * sealed to us.
   */
  unwrap: (wrapped: Uint8Array) => Promise<Uint8Array>
  /** Reports a recording that could not be indexed, with the reason. */
  onFailure: (session: string, reason: string) => void
  /** The index over sessions. Absent if none is kept. */
  contents?: Omit<ContentsJob, 'begin'> & { has(session: string, digest: string): Promise<boolean> }
  /** Object store of recordings that are no longer on the disk. */
  bucket?: Bucket
  thread?: IndexThread
  quiet?: QuietTimes
  /** Absent for KEYFRAMES_FROM. */
  keyframesFrom?: number
}

type Closed = CatalogEntry & { digest: string }
type Wanted = Pick<IndexJob, 'keyframes' | 'contents'>

export class RecordingIndexer {
  readonly #options: IndexerOptions
  readonly #thread: IndexThread
  readonly #quiet: QuietTimes
  readonly #closing = new AbortController()
  /** Sessions, with what is known of their recordings. */
  readonly #queue = new Map<string, EndedRecording | undefined>()
  readonly #failed = new Set<string>()
  #looksThrough = false
  /** Runs until the object store is tried again. */
  #storeRetry: NodeJS.Timeout | undefined
  #working: Promise<void> | undefined

  constructor(options: IndexerOptions) {
    this.#options = options
    this.#thread = options.thread ?? new IndexThread()
    this.#quiet = options.quiet ?? new QuietTimes()
  }

  /**
   * Adds a session that has ended, with its recording closed. Copies the key of `ended`; without it the
   * recording is looked for on the disk.
   */
  add(session: string, ended?: EndedRecording): void {
    if (this.#isClosed) return
    if (this.#queue.size < MAX_QUEUED) {
      this.#queue.get(session)?.key.wipe()
      this.#queue.set(session, ended && { ...ended, key: Secret.of(ended.key.reveal()) })
    } else this.#looksThrough = true
    this.#work()
  }

  /** Also indexes recordings without an index, or with an outdated one. */
  catchUp(): void {
    this.#looksThrough = true
    this.#work()
  }

  /** Resolves when no work is left. */
  async idle(): Promise<void> {
    while (this.#working) await this.#working
  }

  /** Drops the work in progress; the next start repeats it. */
  async close(): Promise<void> {
    this.#closing.abort()
    clearTimeout(this.#storeRetry)
    await this.#thread.close()
    await this.idle()
    for (const ended of this.#queue.values()) ended?.key.wipe()
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted
  }

  #work(): void {
    if (this.#working || this.#isClosed) return
    this.#working = this.#run().finally(() => {
      this.#working = undefined
      if (this.#queue.size > 0 || this.#looksThrough) this.#work()
    })
  }

  async #run(): Promise<void> {
    await this.#runQueue()
    if (!this.#looksThrough || this.#isClosed) return
    this.#looksThrough = false
    try {
      for await (const entry of recordingsIn(this.#options.root)) {
        await this.#runQueue()
        if (this.#isClosed) return
        await this.#index(entry)
      }
    } catch (error) {
      this.#options.onFailure('', messageOf(error))
    }
  }

  async #runQueue(): Promise<void> {
    for (const [session, ended] of this.#queue) {
      if (this.#isClosed) return
      this.#queue.delete(session)
      if (ended) {
        await this.#indexEnded(session, ended)
        continue
      }
      try {
        const entry = await findRecording(this.#options.root, session)
        if (entry) await this.#index(entry)
      } catch (error) {
        this.#fail(session, messageOf(error))
      }
    }
  }

  /** Indexes a recording that has just been closed, and so has no index yet. */
  async #indexEnded(session: string, { directory, begin, size, digest, key }: EndedRecording): Promise<void> {
    // Only its own bytes: a message carries the whole memory that a buffer is part of.
    const own = Uint8Array.from(key.reveal())
    try {
      const contents = this.#contentsJob(begin)
      const keyframes = this.#isLarge(size)
      if (!contents && !keyframes) return
      await this.#quiet.wait(this.#closing.signal)
      if (this.#isClosed) return
      await this.#thread.run({ session, directory, key: own, size, digest, keyframes, ...contents })
    } catch {
      // It may be in the object store by now: the second attempt looks for it, and reports its faults.
      this.#queue.set(session, undefined)
    } finally {
      own.fill(0)
      key.wipe()
    }
  }

  async #index(entry: CatalogEntry): Promise<void> {
    const { session, digest, stored } = entry
    // Without a digest the session still runs, or has no recording.
    if (digest === undefined || this.#failed.has(session) || (stored && this.#storeRetry)) return
    try {
      const wanted = await this.#wanted({ ...entry, digest })
      if (!wanted) return
      await this.#quiet.wait(this.#closing.signal)
      if (!this.#isClosed) await this.#make({ ...entry, digest }, wanted)
    } catch (error) {
      // The recording is sealed to auditors: not an error.
      if (error instanceof RecordingError && error.code === 'wrong_key') this.#failed.add(session)
      else if (isOfTheStore(error)) this.#leaveStore(messageOf(error))
      else if (!this.#isClosed) this.#fail(session, messageOf(error))
    }
  }

  /** Returns the missing indexes of a recording, or undefined if there are none. */
  async #wanted(entry: Closed): Promise<Wanted | undefined> {
    const { session, directory, size, digest, metadata, stored } = entry
    // A viewer of a recording in the object store has to fetch it anyway.
    const keyframes =
      this.#isLarge(size) && !stored && !(await isIndexed(join(directory, INDEX_FILE_NAME), { size, digest }))
    const isKnown = (await this.#options.contents?.has(session, digest)) ?? false
    const contents = isKnown ? undefined : this.#contentsJob(Date.parse(String(metadata['begin'])) || 0)
    return keyframes || contents ? { keyframes, ...contents } : undefined
  }

  async #make(entry: Closed, wanted: Wanted): Promise<void> {
    const { session, directory, size, digest } = entry
    if (wanted.keyframes) await removeUnfinished(directory)
    const key = await this.#options.unwrap(await readFile(join(directory, KEY_FILE_NAME)))
    const local = await locally(entry, this.#options.bucket)
    try {
      await this.#thread.run({ session, directory: local.entry.directory, key, size, digest, ...wanted })
    } finally {
      await local.release()
    }
  }

  #isLarge(size: number): boolean {
    return size >= (this.#options.keyframesFrom ?? KEYFRAMES_FROM)
  }

  #contentsJob(begin: number): { contents: ContentsJob } | undefined {
    const { contents } = this.#options
    return contents && { contents: { path: contents.path, mode: contents.mode, begin } }
  }

  /** Leaves the object store alone and tries it again later; logs one warning for all its recordings. */
  #leaveStore(reason: string): void {
    if (this.#isClosed) return
    this.#storeRetry = setTimeout(() => {
      this.#storeRetry = undefined
      this.catchUp()
    }, STORE_RETRY_MS)
    this.#storeRetry.unref()
    this.#options.onFailure('', reason)
  }

  #fail(session: string, reason: string): void {
    if (this.#failed.size < MAX_FAILED) this.#failed.add(session)
    this.#options.onFailure(session, reason)
  }
}

/**
 * Removes the unfinished index of a dead process. An index that another process is making now is then made
 * elsewhere.
 */
async function removeUnfinished(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (name.startsWith(`${INDEX_FILE_NAME}.`)) await rm(join(directory, name), { force: true })
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
