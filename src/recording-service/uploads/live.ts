/**
 * Copies running recordings: the growth of their files is uploaded as segments, so that a machine lost with
 * its disk loses at most one interval. None of this state is durable: after a crash the recording is sealed
 * from the disk and uploaded whole.
 */
import { join } from 'node:path'
import { FILE_NAME, KEY_FILE_NAME } from '../../../recordings/container/format/limits.ts'
import { sessionDirectory } from '../../../recordings/container/keys.ts'
import type { Bucket } from '../../../recordings/storage/bucket/bucket.ts'
import { BucketError, isOfTheStore } from '../../../recordings/storage/bucket/error.ts'
import { type ObjectKeys, objectKeys } from '../../../recordings/storage/bucket/keys.ts'
import { PART_LENGTH } from '../../../recordings/storage/bucket/transfer.ts'
import type { Id } from '../../model/objects.ts'
import type { SessionRepository, UploadRepository } from '../../store/store.ts'
import { backoff, type StoreHealth } from './health.ts'

/** Number of segments uploaded at a time. */
const AT_ONCE = 4
const FIRST_RETRY_MS = 1000
const LONGEST_RETRY_MS = 60_000
/** Age after which a session that is not in the store was refused before it began. */
const ABANDONED_MS = 60_000

export interface LiveOptions {
  bucket: Bucket
  root: string
  /** Milliseconds between two segments of a session. */
  interval: number
  sessions: Pick<SessionRepository, 'find'>
  uploads: Pick<UploadRepository, 'add'>
  health: StoreHealth
  /** Reports uploaded bytes. */
  onBytes: (bytes: number) => void
  onError: (error: Error, session: Id) => void
  now: () => number
}

interface Live {
  session: Id
  begin: number
  directory: string
  keys: ObjectKeys
  hasKeyFile: boolean
  offset: number
  due: number
  failures: number
}

export class LiveUploads {
  readonly #options: LiveOptions
  readonly #live = new Map<Id, Live>()
  readonly #active = new Map<Id, Promise<void>>()

  constructor(options: LiveOptions) {
    this.#options = options
  }

  begun(session: Id, begin: number): void {
    const { root, bucket, now } = this.#options
    this.#live.set(session, {
      session,
      begin,
      directory: sessionDirectory(root, session, begin),
      keys: objectKeys(bucket.prefix, session, begin),
      hasKeyFile: false,
      offset: 0,
      due: now(),
      failures: 0,
    })
  }

  /** Starts the due uploads, as many as the limit allows. */
  tick(): void {
    const now = this.#options.now()
    const room = this.#options.health.room(AT_ONCE)
    for (const live of this.#live.values()) {
      if (this.#active.size >= room) return
      if (live.due > now || this.#active.has(live.session)) continue
      // Move it behind the others.
      this.#live.delete(live.session)
      this.#live.set(live.session, live)
      const done = this.#step(live).finally(() => this.#active.delete(live.session))
      this.#active.set(live.session, done)
    }
  }

  /** Resolves when no more segments of this session are uploaded. */
  async forget(session: Id): Promise<void> {
    this.#live.delete(session)
    await this.#active.get(session)
  }

  /** Resolves when the running uploads have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#active.values())
  }

  async #step(live: Live): Promise<void> {
    const { now, interval, health, onError } = this.#options
    try {
      if (await this.#hasEnded(live)) return
      const grown = await this.#put(live)
      if (grown > 0) health.worked()
      live.failures = 0
      live.due = now() + (grown === PART_LENGTH ? 0 : interval)
    } catch (error) {
      // The writer creates the file a moment after the folder.
      if (error instanceof BucketError && error.fault === 'local') {
        live.due = now() + interval
        return
      }
      live.failures++
      live.due = now() + backoff(live.failures, FIRST_RETRY_MS, LONGEST_RETRY_MS)
      if (isOfTheStore(error)) health.failed((error as Error).message)
      else onError(error as Error, live.session)
    }
  }

  /** Hands a session that has ended to the upload of whole files. */
  async #hasEnded({ session, begin }: Live): Promise<boolean> {
    const { sessions, uploads, now } = this.#options
    const found = await sessions.find(session)
    if (found ? found.end === undefined : now() - begin < ABANDONED_MS) return false
    const { digest, state } = found?.recording ?? {}
    if (digest && state !== 'deleted' && state !== 'missing') await uploads.add(session, begin, now())
    this.#live.delete(session)
    return true
  }

  async #put(live: Live): Promise<number> {
    const { bucket, onBytes } = this.#options
    const { directory, keys } = live
    if (!live.hasKeyFile) {
      await bucket.ask('whole', { file: join(directory, KEY_FILE_NAME), key: keys.keyFile })
      live.hasKeyFile = true
    }
    const file = join(directory, FILE_NAME)
    const grown = await bucket.ask('segment', { file, offset: live.offset, prefix: keys.segments })
    live.offset += grown
    onBytes(grown)
    return grown
  }
}
