/**
 * The next step for the copy of a closed recording: upload it, read it back, remove the segments, later
 * remove the local file; or remove all of it from the bucket. Each step may be repeated after a crash.
 */
import { join } from 'node:path'
import { FILE_NAME, KEY_FILE_NAME } from '../../../recordings/container/format/limits.ts'
import { sessionDirectory } from '../../../recordings/container/keys.ts'
import type { Bucket } from '../../../recordings/storage/bucket/bucket.ts'
import { BucketError } from '../../../recordings/storage/bucket/error.ts'
import { objectKeys } from '../../../recordings/storage/bucket/keys.ts'
import { PART_LENGTH } from '../../../recordings/storage/bucket/transfer.ts'
import { recordingAt } from '../../../recordings/storage/catalog.ts'
import type { CatalogEntry } from '../../../recordings/storage/catalog-entry.ts'
import { storeAway } from '../../../recordings/storage/stored-away.ts'
import type { Audit } from '../../audit/events/catalogue.ts'
import type { Upload } from '../../model/objects.ts'
import type { UploadRepository } from '../../store/store.ts'
import { NEVER } from '../../store/uploads.ts'

export interface StepOptions {
  bucket: Bucket
  root: string
  uploads: UploadRepository
  audit: Pick<Audit, 'record'>
  /** Milliseconds for which the local file stays after its upload. Undefined to keep it. */
  keepLocal: number | undefined
  onBytes: (bytes: number) => void
  now: () => number
}

export class UploadStep {
  readonly #options: StepOptions

  constructor(options: StepOptions) {
    this.#options = options
  }

  /** Throws BucketError, and the errors of disk, store and audit log; then it is tried again. */
  async run(upload: Upload): Promise<void> {
    switch (upload.state) {
      case 'waiting':
        return await this.#send(upload)
      case 'verified':
        return await this.#tidy(upload)
      case 'stored':
        return await this.#letGo(upload)
      case 'deleting':
        return await this.#delete(upload)
      case 'remote':
      case 'lost':
        return await this.#options.uploads.update(upload.session, upload.state, { due: NEVER })
    }
  }

  async #send(upload: Upload): Promise<void> {
    const { bucket, uploads, now, onBytes } = this.#options
    const { entry, keys } = await this.#place(upload)
    if (entry.stored) return await this.#alreadyAway(upload, entry)
    if (entry.state === 'empty') return await this.#lost(upload, keys.recording)
    const file = join(entry.directory, FILE_NAME)
    await bucket.ask('whole', { file: join(entry.directory, KEY_FILE_NAME), key: keys.keyFile })
    try {
      if (entry.size > PART_LENGTH) await this.#sendInParts(upload, file, keys.recording, entry.size)
      else await bucket.ask('whole', { file, key: keys.recording })
      onBytes(entry.size)
      const verified = await bucket.ask('verify', { file, key: keys.recording })
      const change = {
        state: 'verified',
        ...verified,
        stored: now(),
        failures: 0,
        upload: undefined,
      } as const
      await uploads.update(upload.session, 'waiting', change)
      await this.#tidy({ ...upload, ...change })
    } catch (error) {
      // The object is of no use: send everything again.
      if (error instanceof BucketError && error.fault === 'content')
        await uploads.update(upload.session, 'waiting', { upload: undefined })
      throw error
    }
  }

  async #sendInParts(
    { session, upload: begun }: Upload,
    file: string,
    key: string,
    size: number,
  ): Promise<void> {
    const { bucket, uploads } = this.#options
    const upload = begun ?? (await bucket.ask('beginUpload', { key }))
    if (!begun) await uploads.update(session, 'waiting', { upload })
    try {
      await bucket.ask('whole', { file, key, upload })
    } catch (error) {
      if (!(error instanceof BucketError) || error.fault !== 'missing') throw error
      // If the upload was completed and only the response was lost, the object exists. Otherwise the store
      // has dropped the upload.
      if ((await bucket.ask('size', { key })) === size) return
      await uploads.update(session, 'waiting', { upload: undefined })
      throw error
    }
  }

  /** Removes the segments, which are no longer needed. */
  async #tidy(upload: Upload): Promise<void> {
    const { bucket, uploads, audit, keepLocal, now } = this.#options
    const { session, begin, size, sha256, stored = now() } = upload
    const keys = objectKeys(bucket.prefix, session, begin)
    await bucket.ask('removeBelow', { prefix: keys.segments })
    await audit.record('recording.stored', {
      session,
      object: keys.recording,
      result: 'success',
      ...(size !== undefined && { size }),
      ...(sha256 !== undefined && { sha256 }),
    })
    const due = keepLocal === undefined ? NEVER : stored + keepLocal
    await uploads.update(session, 'verified', { state: 'stored', due, failures: 0 })
  }

  async #letGo(upload: Upload): Promise<void> {
    const { bucket, uploads, now } = this.#options
    const { entry, keys } = await this.#place(upload)
    if (!entry.stored) {
      const { size, sha256 } = upload
      const there = await bucket.ask('size', { key: keys.recording })
      if (there === undefined || there !== size || sha256 === undefined || entry.size !== size) {
        const found = there === undefined ? 'is gone' : `has ${there} bytes`
        await this.#tell(upload, `its copy ${found}, expected ${size} bytes: it is uploaded again`)
        await uploads.update(upload.session, 'stored', { state: 'waiting', due: now(), failures: 0 })
        return
      }
      await storeAway(entry, { key: keys.recording, sha256 })
    }
    await uploads.update(upload.session, 'stored', { state: 'remote', due: NEVER, failures: 0 })
  }

  async #delete({ session, begin, upload }: Upload): Promise<void> {
    const { bucket, uploads } = this.#options
    const keys = objectKeys(bucket.prefix, session, begin)
    if (upload !== undefined) await bucket.ask('abandon', { key: keys.recording, upload })
    await bucket.ask('removeBelow', { prefix: keys.folder })
    await uploads.remove(session)
  }

  /** Handles a database that was restored from a backup and knows less than the folder. */
  async #alreadyAway(upload: Upload, entry: CatalogEntry): Promise<void> {
    const there = await this.#options.bucket.ask('size', { key: entry.stored!.key })
    if (there === entry.size)
      await this.#options.uploads.update(upload.session, 'waiting', { state: 'remote', due: NEVER })
    else await this.#lost(upload, entry.stored!.key)
  }

  async #lost(upload: Upload, key: string): Promise<void> {
    await this.#tell(
      upload,
      `there is neither a file to upload nor ${key} in the bucket: nothing is tried any more`,
    )
    await this.#options.uploads.update(upload.session, 'waiting', { state: 'lost', due: NEVER })
  }

  #tell({ session, begin }: Upload, reason: string): Promise<void> {
    const object = objectKeys(this.#options.bucket.prefix, session, begin).recording
    return this.#options.audit.record('recording.stored', { session, object, result: 'failure', reason })
  }

  async #place({ session, begin }: Upload) {
    const { root, bucket } = this.#options
    const entry = await recordingAt(session, sessionDirectory(root, session, begin))
    return { entry, keys: objectKeys(bucket.prefix, session, begin) }
  }
}
