/**
 * Has each recording indexed when its session is over: off the hot path, one at a time, in a thread of its own. What
 * a crash or a full queue has left out is found on the disk at the next start, or when the queue is empty. An index
 * is never needed: who opens a recording without one makes it.
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
import type { ContentsJob, IndexJob } from './messages.ts'
import { QuietTimes } from './quiet.ts'
import { IndexThread } from './thread.ts'

/** Sessions that wait; what comes on top is found by looking through the folder. */
const MAX_QUEUED = 1000
/** Recordings that could not be indexed, and are not tried again until the next start. */
const MAX_FAILED = 10_000
/** Bytes of a recording that gets keyframes: a smaller one is drawn in less time than it takes to keep an index of it. */
const KEYFRAMES_FROM = 64 * 1024
/** How long an object store that could not answer is left alone. */
const STORE_RETRY_MS = 10 * 60_000

export interface IndexerOptions {
  /** The recordings' folder. */
  root: string
  /** The session's key out of the bytes of its `key.age`. Throws RecordingError `wrong_key` where it is not for us. */
  unwrap: (wrapped: Uint8Array) => Promise<Uint8Array>
  /** A recording that could not be indexed, with the reason. */
  onFailure: (session: string, reason: string) => void
  /** The index over sessions, if there is one that recordings go into. */
  contents?: Omit<ContentsJob, 'begin'> & { has(session: string, digest: string): Promise<boolean> }
  /** Where recordings are that are not on the disk any more. */
  bucket?: Bucket
  thread?: IndexThread
  quiet?: QuietTimes
  /** KEYFRAMES_FROM, when absent. */
  keyframesFrom?: number
}

type Closed = CatalogEntry & { digest: string }
type Wanted = Pick<IndexJob, 'keyframes' | 'contents'>

export class RecordingIndexer {
  readonly #options: IndexerOptions
  readonly #thread: IndexThread
  readonly #quiet: QuietTimes
  readonly #closing = new AbortController()
  readonly #queue = new Set<string>()
  readonly #failed = new Set<string>()
  #looksThrough = false
  /** Runs while the object store is left alone. */
  #storeRetry: NodeJS.Timeout | undefined
  #working: Promise<void> | undefined

  constructor(options: IndexerOptions) {
    this.#options = options
    this.#thread = options.thread ?? new IndexThread()
    this.#quiet = options.quiet ?? new QuietTimes()
  }

  /** A session is over, and its recording closed. */
  add(session: string): void {
    if (this.#queue.size < MAX_QUEUED) this.#queue.add(session)
    else this.#looksThrough = true
    this.#work()
  }

  /** Also indexes what has no index yet, or an outdated one. */
  catchUp(): void {
    this.#looksThrough = true
    this.#work()
  }

  /** Resolves when nothing is left to do. */
  async idle(): Promise<void> {
    while (this.#working) await this.#working
  }

  /** What was begun is dropped; the next start begins it anew. */
  async close(): Promise<void> {
    this.#closing.abort()
    clearTimeout(this.#storeRetry)
    await this.#thread.close()
    await this.idle()
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
    for (const session of this.#queue) {
      if (this.#isClosed) return
      this.#queue.delete(session)
      try {
        const entry = await findRecording(this.#options.root, session)
        if (entry) await this.#index(entry)
      } catch (error) {
        this.#fail(session, messageOf(error))
      }
    }
  }

  async #index(entry: CatalogEntry): Promise<void> {
    const { session, digest, stored } = entry
    // Without a digest it still runs, or there is nothing.
    if (digest === undefined || this.#failed.has(session) || (stored && this.#storeRetry)) return
    try {
      const wanted = await this.#wanted({ ...entry, digest })
      if (!wanted) return
      await this.#quiet.wait(this.#closing.signal)
      if (!this.#isClosed) await this.#make({ ...entry, digest }, wanted)
    } catch (error) {
      // Sealed to auditors: nothing is wrong.
      if (error instanceof RecordingError && error.code === 'wrong_key') this.#failed.add(session)
      else if (isOfTheStore(error)) this.#leaveStore(messageOf(error))
      else if (!this.#isClosed) this.#fail(session, messageOf(error))
    }
  }

  /** What is missing of a recording; undefined: nothing. */
  async #wanted(entry: Closed): Promise<Wanted | undefined> {
    const { session, directory, size, digest, metadata, stored } = entry
    const isLarge = size >= (this.#options.keyframesFrom ?? KEYFRAMES_FROM)
    // Whoever opens one that lies elsewhere has to fetch it anyway.
    const keyframes =
      isLarge && !stored && !(await isIndexed(join(directory, INDEX_FILE_NAME), { size, digest }))
    const contents = await this.#contentsJob(session, digest, String(metadata['begin']))
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

  async #contentsJob(
    session: string,
    digest: string,
    begin: string,
  ): Promise<{ contents: ContentsJob } | undefined> {
    const { contents } = this.#options
    if (!contents || (await contents.has(session, digest))) return undefined
    return { contents: { path: contents.path, mode: contents.mode, begin: Date.parse(begin) || 0 } }
  }

  /** What lies there is looked for again when there is hope; one warning for all of it. */
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

/** What a process that died has left of an index. One that another process is making now is made elsewhere then. */
async function removeUnfinished(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (name.startsWith(`${INDEX_FILE_NAME}.`)) await rm(join(directory, name), { force: true })
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
