/**
 * Retention of the audit log: removes the events of expired days, behind a handover that the broker signs.
 * The steps: verify the events, so that no manipulation is covered up; archive them; write their evidence of
 * remaining recordings to the log again; write the signed handover to the log; remove the rows. After a crash
 * the next run repeats the missing steps.
 *
 * The cut is made behind a checkpoint, and never after: the note of the log's reach, the first row of a
 * running session, and the last event delivered to every receiver, unless that is twice as old as the limit.
 */
import { Buffer } from 'node:buffer'
import type { KeyObject } from 'node:crypto'
import { mkdir, open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { isDue, type SessionEvidence } from '../../recordings/container/evidence.ts'
import type { Anchor } from '../audit/anchor.ts'
import { exportLine } from '../audit/export.ts'
import { farthestHandover, handoverFields } from '../audit/handover.ts'
import type { AuditLog } from '../audit/log.ts'
import { verifyAudit } from '../audit/verify.ts'
import type { AuditRepository, AuditRow, SessionRepository } from '../store/store.ts'
import { Evidence } from './evidence.ts'
import { progressEntry } from './progress.ts'

const DAY_MS = 86_400_000
const ROWS_AT_A_TIME = 1000
/** Rows removed by one run; the others wait for the next. */
const MAX_ROWS = 100_000
/** Events written to the audit log at once. */
const EVENTS_AT_ONCE = 250

export interface AuditLimits {
  /** 0 to keep events for ever. */
  keepDays: number
  /** Folder to which rows are written before they are removed. */
  archive?: string
}

export interface AuditRetentionOptions {
  repository: AuditRepository
  audit: Pick<AuditLog, 'record' | 'checkpoint'>
  anchor: Pick<Anchor, 'read'>
  sessions: Pick<SessionRepository, 'list' | 'find'>
  /** Ed25519 key that signs the log. */
  key: KeyObject
  /** Raw Ed25519 keys that have signed the log: the current key, and its predecessors. */
  trusted: readonly Uint8Array[]
  /** Returns the last row that all receivers of events have, or undefined if there is none. */
  delivered: () => number | undefined
  limits: AuditLimits
  /** Milliseconds since the epoch. */
  now: () => number
  /** Milliseconds since any moment, never decreasing. */
  monotonic: () => number
  onError: (error: Error) => void
}

export class AuditRetention {
  limits: AuditLimits
  readonly #options: AuditRetentionOptions
  /** Difference between the wall clock and the monotonic one, in milliseconds. */
  readonly #offset: number
  #run: Promise<void> | undefined

  constructor(options: AuditRetentionOptions) {
    this.#options = options
    this.limits = options.limits
    this.#offset = options.now() - options.monotonic()
  }

  /** Removes expired rows, up to a limit. Never throws, and runs once at a time. */
  enforce(): Promise<void> {
    this.#run ??= this.#enforce()
      .catch((error: Error) => this.#options.onError(error))
      .finally(() => {
        this.#run = undefined
      })
    return this.#run
  }

  async #enforce(): Promise<void> {
    const { repository, audit, now, monotonic, key, trusted } = this.#options
    await this.#finish()
    const { keepDays, archive } = this.limits
    if (keepDays === 0) return
    if (Math.abs(now() - monotonic() - this.#offset) >= DAY_MS) {
      throw new Error('the clock has jumped by a day or more: no event is removed until the next start')
    }
    const cut = await this.#cut(keepDays)
    if (!cut) return
    const evidence = new Evidence()
    const { rows, fault } = await verifyAudit(repository, {
      trusted,
      upTo: cut.sequence,
      onEvent: (event) => evidence.add(event),
    })
    if (fault) {
      throw new Error(
        `the audit log is not in order, and nothing of it is removed: row ${fault.sequence}: ${fault.code}: ${fault.message}`,
      )
    }
    const file = archive === undefined ? undefined : await this.#archive(archive, cut.sequence)
    await this.#carryOver(evidence)
    await audit.record('audit.handover', {
      ...handoverFields({ last: cut, count: rows }, key),
      ...(file !== undefined && { reason: `archived in ${file}` }),
    })
    await audit.checkpoint()
    await this.#finish()
  }

  /** Removes the rows covered by a handover. */
  async #finish(): Promise<void> {
    const { repository, trusted } = this.#options
    const handover = await farthestHandover(repository, trusted)
    if (!handover) return
    const { sequence, hash } = handover.last
    const [row] = await repository.range(sequence, 1)
    // Leave a log that differs from the one handed over, so that `audit verify` reports it.
    if (row?.sequence !== sequence || !Buffer.from(row.hash).equals(hash)) return
    while ((await repository.removeUpTo(sequence, ROWS_AT_A_TIME)) > 0) await breath()
  }

  /** Returns the last checkpoint that may be removed, with all before it. */
  async #cut(keepDays: number): Promise<AuditRow | undefined> {
    const { repository, now, delivered } = this.#options
    const today = Math.floor(now() / DAY_MS) * DAY_MS
    const old = today - keepDays * DAY_MS
    const tooOld = today - 2 * keepDays * DAY_MS
    const bound = await this.#bound()
    const had = delivered() ?? Number.MAX_SAFE_INTEGER
    let cut: AuditRow | undefined
    for (let from = 0, seen = 0; seen < MAX_ROWS; ) {
      const rows = await repository.range(from, ROWS_AT_A_TIME)
      for (const row of rows) {
        if (row.time >= old || row.sequence > bound) return cut
        if (row.sequence > had && row.time >= tooOld) return cut
        if (row.code === 'audit.checkpoint') cut = row
      }
      const last = rows.at(-1)
      if (!last) return cut
      from = last.sequence + 1
      seen += rows.length
      await breath()
    }
    return cut
  }

  /** Returns the last row whose removal depends on its age alone. */
  async #bound(): Promise<number> {
    const { repository, anchor, sessions } = this.#options
    const noted = await anchor.read()
    // Without the note the log may have been cut: keep it as evidence.
    if (!noted) return 0
    let bound = noted.sequence - 1
    const { items } = await sessions.list({ status: 'current' })
    for (const { id } of items) {
      const [first] = await repository.ofSession(id, 1)
      if (first) bound = Math.min(bound, first.sequence - 1)
    }
    return bound
  }

  /** Writes the archive and returns its file. */
  async #archive(folder: string, last: number): Promise<string> {
    const { repository } = this.#options
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const [begin] = await repository.range(0, 1)
    const number = (row: number) => String(row).padStart(12, '0')
    const path = join(folder, `audit-${number(begin?.sequence ?? 0)}-${number(last)}.jsonl`)
    const file = await open(`${path}.new`, 'w', 0o600)
    try {
      for (let from = 0; from <= last; ) {
        const rows = await repository.range(from, ROWS_AT_A_TIME)
        const some = rows.filter(({ sequence }) => sequence <= last)
        await file.write(some.map(exportLine).join(''))
        from = (rows.at(-1)?.sequence ?? last) + 1
      }
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(`${path}.new`, path)
    return path
  }

  /** Writes the rows' evidence of recordings that are not deleted to the log again. */
  async #carryOver(evidence: Evidence): Promise<void> {
    const { audit, sessions } = this.#options
    let told: Promise<void>[] = []
    for (const [session, known] of evidence.sessions) {
      if (known.deleted !== undefined) continue
      // A recording that was never closed may still exist.
      if (!isDue(known) && !(await sessions.find(session))?.isRecorded) continue
      told.push(audit.record('audit.kept', keptOf(session, known)))
      if (told.length < EVENTS_AT_ONCE) continue
      await Promise.all(told)
      told = []
    }
    await Promise.all(told)
  }
}

function keptOf(session: string, { closed, noted, lost, stored }: SessionEvidence) {
  return {
    session,
    ...closed,
    ...(noted && { object: progressEntry(session, { ...noted, time: noted.milliseconds * 1000 }) }),
    ...(lost !== undefined && { result: 'lost', reason: lost }),
    ...(stored !== undefined && { sha256: stored }),
  }
}

/** Yields the event loop, which sessions share. */
const breath = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
