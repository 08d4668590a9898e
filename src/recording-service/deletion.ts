/**
 * How a recording is deleted: first its tombstone stands in the audit log and is signed, then the folder is moved
 * aside in one step, then it is gone. A crash in between leaves a tombstone with its recording still there (asked
 * again, it is deleted again), or a folder aside whose rest the next start removes.
 */
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncDirectory } from '../../recordings/container/session-file.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import type { EventFields } from '../audit/events/fields.ts'
import type { HoldRelease, Id, LegalHold, ReleaseWish, SessionRecord } from '../model/objects.ts'
import type { SessionRepository } from '../store/store.ts'

/** Under the recordings' folder: what was deleted and may not be gone yet. No year is called like this. */
const ASIDE = 'deleted'

/** How long what was asked for can be confirmed, in milliseconds. */
export const RELEASE_MS = 24 * 60 * 60 * 1000

/** `asked`: a second person has to confirm it; `person_required`: whoever wishes it is none, and nothing was done. */
export type ReleaseAnswer = 'released' | 'asked' | 'person_required'

/**
 * Writes the event before anything is changed: of a release that was asked for, or of one that is done, which was asked
 * for by somebody else before where `asked` says so.
 */
export type TellRelease = (
  answer: Exclude<ReleaseAnswer, 'person_required'>,
  asked?: ReleaseWish,
) => Promise<void>

export type DeleteAnswer = 'deleted' | 'not_found' | 'still_recording' | 'on_hold'

/** Who wants it, and why: `tell` writes the event `recording.deleted` with these fields beside its own. */
export interface DeleteRequest {
  method: 'age' | 'size' | 'request'
  reason: string
  tell: (fields: EventFields) => Promise<void>
}

export interface DeletionOptions {
  /** The recordings' folder. */
  root: string
  sessions: SessionRepository
  /** Default: one. */
  holdRelease?: HoldRelease
  /** Signs the audit log up to here. */
  checkpoint: () => Promise<void>
  /** What an object store may have of it is to go, too: noted when this resolves. Absent: there is none. */
  forget?: (session: Id, begin: number) => Promise<void>
}

export class Deletion {
  readonly #options: DeletionOptions
  #turn: Promise<unknown> = Promise.resolve()
  /** May be replaced while it runs. */
  holdRelease: HoldRelease

  constructor(options: DeletionOptions) {
    this.#options = options
    this.holdRelease = options.holdRelease ?? 'one'
  }

  /** Removes what deletions before a crash have left aside; due at the start. */
  async finish(): Promise<void> {
    const aside = join(this.#options.root, ASIDE)
    const names = await readdir(aside).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return []
      throw error
    })
    for (const session of names) await this.#gone(session)
  }

  /**
   * Deletes a session's recording. Throws what `tell` and the disk throw; a disk that fails after the tombstone is
   * told by a second event.
   */
  remove(session: Id, request: DeleteRequest): Promise<DeleteAnswer> {
    return this.#inTurn(() => this.#remove(session, request))
  }

  /**
   * Sets the hold, when `tell` has written so; false: it was set before. One whose end somebody has asked for goes on as
   * it was, and the wish is gone.
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
   * Ends the hold, or asks for that: where it takes two, somebody else than the one who has asked has to wish it too,
   * within RELEASE_MS, and both have to be persons who have signed in themselves. A session that is not held is released
   * already.
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

  /** One after the other: a hold that was answered is in force, whatever is deleted at the same moment. */
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
    // One that was missed may be back: a volume that was not there.
    if (!entry && state === 'missing') return 'not_found'
    const told = { session: id, method, reason }
    if (!entry) {
      // A tombstone would hide that somebody else has removed it.
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

  /** The row first: what is aside when it is written is removed, now or at the next start. */
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

/** Whether what was asked for can still be confirmed. */
export const isFresh = ({ since }: ReleaseWish, now: number): boolean =>
  now >= since && now - since < RELEASE_MS
