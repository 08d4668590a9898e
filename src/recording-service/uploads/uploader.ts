/**
 * Copies recordings to the object store: segments while a session runs, the whole file when it has ended.
 * Pending work is in the database, so memory does not grow while the store is down; each recording has its
 * own count of failures, so that one that cannot be uploaded delays no other.
 */
import type { Bucket } from '../../../recordings/storage/bucket/bucket.ts'
import { isOfTheStore } from '../../../recordings/storage/bucket/error.ts'
import { objectKeys } from '../../../recordings/storage/bucket/keys.ts'
import type { Audit } from '../../audit/events/catalogue.ts'
import type { Id, Upload } from '../../model/objects.ts'
import type { SessionRepository, UploadRepository } from '../../store/store.ts'
import { backoff, StoreHealth } from './health.ts'
import { LiveUploads } from './live.ts'
import { UploadStep } from './step.ts'

const TICK_MS = 1000
/** Number of whole files uploaded at a time: each has a part in memory. */
const AT_ONCE = 2
const LONGEST_RETRY_MS = 10 * 60_000
/** Failures in a row of one recording, while the store works, after which an event is written. */
const TOLD_AFTER = 3
const TOLD_AFTER_OF_STORE = 8

export interface UploaderOptions {
  bucket: Bucket
  /** The recordings' folder. */
  root: string
  uploads: UploadRepository
  sessions: Pick<SessionRepository, 'find'>
  audit: Pick<Audit, 'record'>
  /** Milliseconds for which local files stay after their upload. Undefined to keep them. */
  keepLocal: number | undefined
  /** Milliseconds between two segments of a session. */
  segmentInterval: number
  /** Milliseconds until the first retry of a whole file; each further wait is twice as long. */
  firstRetry?: number
  onError: (error: Error, session: Id | undefined) => void
  /** Milliseconds since the epoch. */
  now: () => number
}

/** Totals since the start. */
export interface UploadTotals {
  bytes: number
  failures: number
}

export class Uploader {
  readonly totals: UploadTotals = { bytes: 0, failures: 0 }
  readonly #options: UploaderOptions
  readonly #health: StoreHealth
  readonly #live: LiveUploads
  readonly #step: UploadStep
  readonly #active = new Map<Id, Promise<void>>()
  #timer: NodeJS.Timeout | undefined
  #looking: Promise<void> | undefined
  #isStopped = false

  constructor(options: UploaderOptions) {
    this.#options = options
    const onBytes = (bytes: number) => {
      this.totals.bytes += bytes
    }
    this.#health = new StoreHealth((reason) => this.#isDown(reason))
    const { onError, segmentInterval: interval } = options
    this.#live = new LiveUploads({ ...options, interval, health: this.#health, onBytes, onError })
    this.#step = new UploadStep({ ...options, onBytes })
  }

  /** Continues the work of an earlier run, and adds recordings that are older than the object store. */
  async start(): Promise<void> {
    const { uploads, keepLocal, now } = this.#options
    await uploads.adopt(now())
    await uploads.keepLocal(keepLocal)
    this.#timer = setInterval(() => this.#tick(), TICK_MS)
  }

  /** Adds a recording that begins; its folder exists. */
  begun(session: Id, begin: number): void {
    this.#live.begun(session, begin)
  }

  /** Removes a deleted recording from the bucket, now or when the store can be reached. */
  async forget(session: Id, begin: number): Promise<void> {
    await this.#live.forget(session)
    await this.#options.uploads.forget(session, begin, this.#options.now())
  }

  /** Stops the running uploads; the next start continues them. */
  async stop(): Promise<void> {
    this.#isStopped = true
    clearInterval(this.#timer)
    await this.#options.bucket.close()
    await this.#looking
    await Promise.all([...this.#active.values(), this.#live.settled()])
  }

  #tick(): void {
    if (this.#isStopped) return
    this.#live.tick()
    this.#looking ??= this.#look()
      .catch((error: Error) => this.#options.onError(error, undefined))
      .finally(() => {
        this.#looking = undefined
      })
  }

  async #look(): Promise<void> {
    const { uploads, now } = this.#options
    const room = this.#health.room(AT_ONCE) - this.#active.size
    if (room <= 0) return
    for (const upload of await uploads.due(now(), room, [...this.#active.keys()])) {
      const done = this.#run(upload).finally(() => {
        this.#active.delete(upload.session)
        // Do not wait for the timer while the store works.
        if (!this.#health.isDown) this.#tick()
      })
      this.#active.set(upload.session, done)
    }
  }

  async #run(upload: Upload): Promise<void> {
    try {
      await this.#step.run(upload)
      this.#health.worked()
    } catch (error) {
      if (this.#isStopped) return
      await this.#failed(upload, error as Error).catch((second: Error) =>
        this.#options.onError(second, upload.session),
      )
    }
  }

  async #failed({ session, begin, failures: before }: Upload, error: Error): Promise<void> {
    const { uploads, audit, bucket, now, firstRetry = 5000, onError } = this.#options
    this.totals.failures++
    const failures = before + 1
    const ofTheStore = isOfTheStore(error)
    if (ofTheStore) this.#health.failed(error.message)
    else onError(error, session)
    const found = await uploads.find(session)
    if (!found) return
    const due = now() + backoff(failures, firstRetry, LONGEST_RETRY_MS)
    // Keep a state that has changed meanwhile (a deletion), and retry it later too.
    await uploads.update(session, found.state, { due, failures })
    if (failures === (ofTheStore ? TOLD_AFTER_OF_STORE : TOLD_AFTER) && !this.#health.isDown) {
      const object = objectKeys(bucket.prefix, session, begin).recording
      await audit.record('recording.stored', { session, object, result: 'failure', reason: error.message })
    }
  }

  #isDown(reason: string): void {
    const { audit, bucket, onError } = this.#options
    audit
      .record('sink.down', { object_type: 'object_store', object: bucket.address, reason })
      .catch((error: Error) => onError(error, undefined))
  }
}
