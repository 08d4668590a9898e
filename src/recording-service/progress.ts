/**
 * How far the recordings of running sessions reach, in the audit log: every few seconds the state of those that have
 * grown stands there as `recording.progress` and is signed. What somebody takes away from a recording after a hard stop
 * is missed by the next start and by whoever verifies.
 *
 * Only what is on the disk is noted, or a power cut would look like a theft: a checkpoint is there when the writer has
 * asked for the next one (signed.ts), and of a session that has fallen silent the file is synced here.
 */
import { open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Noted } from '../../recordings/container/evidence.ts'
import { FILE_NAME } from '../../recordings/container/format/limits.ts'
import type { Audit } from '../audit/events/catalogue.ts'
import { MAX_VALUE } from '../audit/events/clean.ts'
import type { OpenRecording, RecordingService } from './service.ts'
import type { Reached } from './signed.ts'

/**
 * How often it is looked, how long a recording that was noted waits for its next note, and how old a checkpoint is that
 * is taken for the last one for now: together under 10 s.
 */
export const PROGRESS_INTERVAL_MS = 1000
const NOTE_MS = 6000
const SETTLE_MS = 1500
/** Files that are synced at a time. */
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
  /** Bytes of the file that were noted. */
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
   * Notes the recordings that have grown and whose turn it is; resolves when it stands in the log and is signed. Throws
   * when the log cannot be written: it is tried again at the next look.
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
    for (let from = 0; from < turns.length; from += SYNCS) {
      const some = turns.slice(from, from + SYNCS).map(async ({ session, recording, size }) => {
        const reached = await reachedBy(recording, at, size)
        if (reached && reached.size > size) due.push({ session, reached })
      })
      await Promise.all(some)
    }
    // Those of sessions that are over are forgotten with the old map.
    this.#noted = noted
    if (due.length === 0) return
    const lines = due.map(({ session, reached }) => progressEntry(session, reached))
    await Promise.all(inValues(lines).map((object) => audit.record('recording.progress', { object })))
    for (const { session, reached } of due) noted.set(session, { size: reached.size, at })
    await checkpoint()
  }
}

/** How far the file is on the disk, when that is further than `size`. */
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
    // Its writer tells of a disk that fails; what is not there cannot be noted.
    return false
  }
}

/** `SESSION:BYTES:DIGEST:MILLISECONDS`, as docs/events.md has it. */
export function progressEntry(session: string, { size, digest, time }: Omit<Reached, 'sequence'>): string {
  return `${session}:${size}:${digest}:${Math.floor(time / 1000)}`
}

const ENTRY = /^([^: ]{1,64}):(\d{1,15}):([0-9a-f]{64}):(\d{1,15})$/

/** What an event `recording.progress` says; what is no entry is left out. */
export function progressOf(object: string): { session: string; noted: Noted }[] {
  return object.split(' ').flatMap((entry) => {
    const [, session, size, digest, milliseconds] = ENTRY.exec(entry) ?? []
    if (session === undefined || digest === undefined) return []
    return [{ session, noted: { size: Number(size), digest, milliseconds: Number(milliseconds) } }]
  })
}

/** As many entries in a value as it holds. */
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
