/**
 * Notes the reach of running recordings in the audit log: every few seconds the state of those that have
 * grown is written as `recording.progress` and signed. Bytes removed from a recording after a hard stop are
 * then missed by the next start and by each verification.
 *
 * Only bytes on the disk are noted, or a power cut would look like a theft: a checkpoint is on the disk when
 * the writer has requested the next one (signed.ts), and the file of a silent session is synced here.
 */
import { open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Noted } from '../../recordings/container/evidence.ts'
import { FILE_NAME } from '../../recordings/container/format/limits.ts'
import type { Audit } from '../audit/events/catalogue.ts'
import { MAX_VALUE } from '../audit/events/clean.ts'
import { Pace } from '../threads/pace.ts'
import type { OpenRecording, RecordingService } from './service.ts'
import type { Reached } from './signed.ts'

/**
 * Interval of the checks, time between two notes of a recording, and age from which a checkpoint counts as
 * the last one for now: together under 10 s.
 */
export const PROGRESS_INTERVAL_MS = 1000
const NOTE_MS = 6000
const SETTLE_MS = 1500
/** Number of files synced at a time. */
const SYNCS = 16

export interface ProgressOptions {
  recordingService: Pick<RecordingService, 'open'>
  audit: Audit
  /** Signs the audit log up to here. */
  checkpoint: () => Promise<void>
  /** Milliseconds since any moment, never decreasing: the clock of the recording service. */
  monotonic: () => number
}

interface Note {
  /** Noted bytes of the file. */
  size: number
  at: number
}

export class Progress {
  readonly #options: ProgressOptions
  #noted = new Map<string, Note>()
  #looking: Promise<void> | undefined

  constructor(options: ProgressOptions) {
    this.#options = options
  }

  /**
   * Notes the recordings that have grown and are due. Resolves when the note is in the log and signed. Throws
   * if the log cannot be written; the next check tries again.
   */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #look(): Promise<void> {
    const { recordingService, audit, checkpoint, monotonic } = this.#options
    const at = monotonic()
    const noted = new Map<string, Note>()
    const turns: { session: string; recording: OpenRecording; size: number }[] = []
    for (const [session, recording] of recordingService.open) {
      const before = this.#noted.get(session)
      if (before) noted.set(session, before)
      if (!before || at - before.at >= NOTE_MS) turns.push({ session, recording, size: before?.size ?? 0 })
    }
    const due: { session: string; reached: Reached }[] = []
    const pace = new Pace()
    for (let from = 0; from < turns.length; from += SYNCS) {
      await pace.step()
      const some = turns.slice(from, from + SYNCS).map(async ({ session, recording, size }) => {
        const reached = await reachedBy(recording, at, size)
        if (reached && reached.size > size) due.push({ session, reached })
      })
      await Promise.all(some)
    }
    // The old map goes, with the sessions that have ended.
    this.#noted = noted
    if (due.length === 0) return
    const lines = due.map(({ session, reached }) => progressEntry(session, reached))
    await Promise.all(inValues(lines).map((object) => audit.record('recording.progress', { object })))
    for (const { session, reached } of due) noted.set(session, { size: reached.size, at })
    await checkpoint()
  }
}

/** Returns the reach of the file on the disk, if it is beyond `size`. */
async function reachedBy(
  { directory, signed }: OpenRecording,
  now: number,
  size: number,
): Promise<Reached | undefined> {
  const { latest } = signed
  if (
    latest &&
    latest.size > size &&
    now - latest.at >= SETTLE_MS &&
    (await isOnDisk(directory, latest.size))
  ) {
    signed.settle(latest)
  }
  return signed.settled
}

async function isOnDisk(directory: string, size: number): Promise<boolean> {
  const path = join(directory, FILE_NAME)
  try {
    if ((await stat(path)).size < size) return false
    const file = await open(path, 'r')
    try {
      await file.datasync()
      return (await file.stat()).size >= size
    } finally {
      await file.close()
    }
  } catch {
    // The writer reports a failing disk; missing bytes cannot be noted.
    return false
  }
}

/** Returns `SESSION:BYTES:DIGEST:MILLISECONDS`, as in docs/events.md. */
export function progressEntry(session: string, { size, digest, time }: Omit<Reached, 'sequence'>): string {
  return `${session}:${size}:${digest}:${Math.floor(time / 1000)}`
}

const ENTRY = /^([^: ]{1,64}):(\d{1,15}):([0-9a-f]{64}):(\d{1,15})$/

/** Parses the entries of an event `recording.progress`; malformed entries are left out. */
export function progressOf(object: string): { session: string; noted: Noted }[] {
  return object.split(' ').flatMap((entry) => {
    const [, session, size, digest, milliseconds] = ENTRY.exec(entry) ?? []
    if (session === undefined || digest === undefined) return []
    return [{ session, noted: { size: Number(size), digest, milliseconds: Number(milliseconds) } }]
  })
}

/** Joins as many entries as fit into a value. */
function inValues(entries: readonly string[]): string[] {
  const values: string[] = []
  for (const entry of entries) {
    const last = values.at(-1)
    if (last !== undefined && last.length + 1 + entry.length <= MAX_VALUE) {
      values[values.length - 1] = `${last} ${entry}`
    } else values.push(entry)
  }
  return values
}
