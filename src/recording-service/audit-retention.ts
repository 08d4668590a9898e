/**
 * Retention of the audit log: events of days that are over are removed, behind a handover that the broker signs. First
 * it is proven that they are in order, so that nobody's changes are covered up; then they are archived; then what they
 * say of recordings that are still there is said again, in the log that goes on; then the handover stands in it, signed;
 * then they are removed. A crash leaves each step to be done by the next run.
 *
 * The cut is made behind a checkpoint, and never further than: the note of how far the log reaches, the first row of a
 * session that still runs, and what every receiver of events has had, unless that is as long again ago.
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
/** Removed by one run; the others wait for the next. */
const MAX_ROWS = 100_000
/** Events that are handed to the audit log at once. */
const EVENTS_AT_ONCE = 250

export interface AuditLimits {
  /** 0: for ever. */
  keepDays: number
  /** Folder that rows are written to before they are removed. */
  archive?: string
}

export interface AuditRetentionOptions {
  repository: AuditRepository
  audit: Pick<AuditLog, 'record' | 'checkpoint'>
  anchor: Pick<Anchor, 'read'>
  sessions: Pick<SessionRepository, 'list' | 'find'>
  /** Ed25519, which signs the log. */
  key: KeyObject
  /** Raw Ed25519 keys that have signed it: this one's, and those that it came in the place of. */
  trusted: readonly Uint8Array[]
  /** The last row that all receivers of events have; undefined: there is none. */
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
  /** The wall clock beside the monotonic one, in milliseconds. */
  readonly #offset: number
  #run: Promise<void> | undefined

  constructor(options: AuditRetentionOptions) {
    this.#options = options
    this.limits = options.limits
    this.#offset = options.now() - options.monotonic()
  }

  /** Removes what is due, a bounded number of rows. Never throws, and runs once at a time. */
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

  /** Removes the rows that a handover has given up. */
  async #finish(): Promise<void> {
    const { repository, trusted } = this.#options
    const handover = await farthestHandover(repository, trusted)
    if (!handover) return
    const { sequence, hash } = handover.last
    const [row] = await repository.range(sequence, 1)
    // Another log than the one that was handed over is left as it is, for `audit verify` to name.
    if (row?.sequence !== sequence || !Buffer.from(row.hash).equals(hash)) return
    while ((await repository.removeUpTo(sequence, ROWS_AT_A_TIME)) > 0) await breath()
  }

  /** The last checkpoint that may go, and all before it. */
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

  /** The last row that nothing but its age is asked of. */
  async #bound(): Promise<number> {
    const { repository, anchor, sessions } = this.#options
    const noted = await anchor.read()
    // Without it the log may have been cut: it is evidence.
    if (!noted) return 0
    let bound = noted.sequence - 1
    const { items } = await sessions.list({ status: 'current' })
    for (const { id } of items) {
      const [first] = await repository.ofSession(id, 1)
      if (first) bound = Math.min(bound, first.sequence - 1)
    }
    return bound
  }

  /** Answers with the file. */
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

  /** What the rows say of recordings that nothing says to be deleted. */
  async #carryOver(evidence: Evidence): Promise<void> {
    const { audit, sessions } = this.#options
    let told: Promise<void>[] = []
    for (const [session, known] of evidence.sessions) {
      if (known.deleted !== undefined) continue
      // One that was never closed may be there all the same.
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

/** The event loop is everybody's. */
const breath = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
