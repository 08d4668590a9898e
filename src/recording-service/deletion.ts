/**
 * Deletes a recording: first its tombstone is written to the audit log and signed, then the folder is moved
 * aside in one step, then it is removed. A crash in between leaves a tombstone with its recording (a repeated
 * request deletes it), or a folder aside that the next start removes.
 */
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncDirectory } from '../../recordings/container/session-file.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import type { EventFields } from '../audit/events/fields.ts'
import type { HoldRelease, Id, LegalHold, ReleaseWish, SessionRecord } from '../model/objects.ts'
import type { SessionRepository } from '../store/store.ts'

/** Folder under the recordings' folder for deleted ones that are not removed yet. No year has this name. */
const ASIDE = 'deleted'

/** Time in which a requested release can be confirmed, in milliseconds. */
export const RELEASE_MS = 24 * 60 * 60 * 1000

/**
 * `asked`: a second person has to confirm the release; `person_required`: the caller is not a person, and
 * nothing was done.
 */
export type ReleaseAnswer = 'released' | 'asked' | 'person_required'

/**
 * Writes the event before anything is changed: of a requested release, or of a completed one, which another
 * user requested before if `asked` is set.
 */
export type TellRelease = (
  answer: Exclude<ReleaseAnswer, 'person_required'>,
  asked?: ReleaseWish,
) => Promise<void>

export type DeleteAnswer = 'deleted' | 'not_found' | 'still_recording' | 'on_hold'

/**
 * The requester and the reason: `tell` writes the event `recording.deleted` with these fields beside its own.
 */
export interface DeleteRequest {
  method: 'age' | 'size' | 'request'
  reason: string
  tell: (fields: EventFields) => Promise<void>
}

export interface DeletionOptions {
  /** The recordings' folder. */
  root: string
  sessions: SessionRepository
  /** Absent for one person. */
  holdRelease?: HoldRelease
  /** Signs the audit log up to here. */
  checkpoint: () => Promise<void>
  /**
   * Notes that the object store's copy must be deleted too, and resolves when that is stored. Absent without
   * a store.
   */
  forget?: (session: Id, begin: number) => Promise<void>
}

export class Deletion {
  readonly #options: DeletionOptions
  #turn: Promise<unknown> = Promise.resolve()
  /** May be replaced at any time. */
  holdRelease: HoldRelease

  constructor(options: DeletionOptions) {
    this.#options = options
    this.holdRelease = options.holdRelease ?? 'one'
  }

  /** Removes the folders that deletions before a crash have left aside; called at the start. */
  async finish(): Promise<void> {
    const aside = join(this.#options.root, ASIDE)
    const names = await readdir(aside).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return []
      throw error
    })
    for (const session of names) await this.#gone(session)
  }

  /**
   * Deletes a session's recording. Throws the errors of `tell` and of the disk; a disk error after the
   * tombstone is reported by a second event.
   */
  remove(session: Id, request: DeleteRequest): Promise<DeleteAnswer> {
    return this.#inTurn(() => this.#remove(session, request))
  }

  /**
   * Sets the hold after `tell` has written the event. Returns false if it was set before. A hold whose
   * release was requested stays, and the request is dropped.
   */
  hold(session: Id, hold: LegalHold, tell: () => Promise<void>): Promise<boolean> {
    return this.#inTurn(async () => {
      const before = (await this.#options.sessions.find(session))?.legalHold
      if (before && !before.release) return false
      await tell()
      const { release: _, ...kept } = before ?? hold
      await this.#options.sessions.update(session, { legalHold: kept })
      return true
    })
  }

  /**
   * Releases the hold, or requests that. If two persons are required, another user than the requester has to
   * confirm within RELEASE_MS, and both must be persons that have signed in themselves. Returns `released`
   * for a session without a hold.
   */
  release(session: Id, wish: ReleaseWish, isPerson: boolean, tell: TellRelease): Promise<ReleaseAnswer> {
    return this.#inTurn(async () => {
      const { sessions } = this.#options
      const held = (await sessions.find(session))?.legalHold
      if (!held) return 'released'
      if (this.holdRelease === 'two' && !isPerson) return 'person_required'
      const asked = held.release && isFresh(held.release, wish.since) ? held.release : undefined
      if (this.holdRelease === 'two' && (!asked || asked.userId === wish.userId)) {
        if (asked) return 'asked'
        await tell('asked')
        await sessions.update(session, { legalHold: { ...held, release: wish } })
        return 'asked'
      }
      await tell('released', asked)
      await sessions.update(session, { legalHold: undefined })
      return 'released'
    })
  }

  /** Runs one after the other: a confirmed hold is in force for any deletion at the same moment. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work, work)
    this.#turn = done.catch(() => undefined)
    return done
  }

  async #remove(id: Id, { method, reason, tell }: DeleteRequest): Promise<DeleteAnswer> {
    const session = await this.#options.sessions.find(id)
    const state = session?.recording?.state
    if (!session || state === undefined || state === 'deleted') return 'not_found'
    if (state === 'open') return 'still_recording'
    if (session.legalHold) return 'on_hold'
    const entry = await findRecording(this.#options.root, id)
    // A missing recording may be back: its volume was not mounted.
    if (!entry && state === 'missing') return 'not_found'
    const told = { session: id, method, reason }
    if (!entry) {
      // A tombstone would hide that the recording was removed by other means.
      await tell({ ...told, result: 'failure', reason: 'there was no recording any more' })
      await this.#mark(session, 'missing')
      return 'not_found'
    }
    await tell({ ...told, size: entry.size, ...(entry.digest !== undefined && { digest: entry.digest }) })
    await this.#options.checkpoint()
    await this.#moveAside(entry.directory, id).catch((error: Error) => this.#failed(error, told, tell))
    await this.#gone(id)
    return 'deleted'
  }

  async #moveAside(directory: string, session: Id): Promise<void> {
    const aside = join(this.#options.root, ASIDE)
    await mkdir(aside, { recursive: true, mode: 0o700 })
    await rename(directory, join(aside, session))
    await syncDirectory(aside)
    await syncDirectory(dirname(directory))
  }

  async #failed(error: Error, told: EventFields, tell: DeleteRequest['tell']): Promise<never> {
    await tell({ ...told, result: 'failure', reason: error.message })
    throw error
  }

  /** Updates the row first: a folder that is aside by then is removed now or at the next start. */
  async #gone(id: Id): Promise<void> {
    const session = await this.#options.sessions.find(id)
    if (session) {
      await this.#mark(session, 'deleted')
      await this.#options.forget?.(id, session.begin)
    }
    await rm(join(this.#options.root, ASIDE, id), { recursive: true, force: true })
  }

  async #mark({ id, recording }: SessionRecord, state: 'deleted' | 'missing'): Promise<void> {
    if (recording) await this.#options.sessions.update(id, { recording: { ...recording, state } })
  }
}

/** Returns whether the request can still be confirmed. */
export const isFresh = ({ since }: ReleaseWish, now: number): boolean =>
  now >= since && now - since < RELEASE_MS
